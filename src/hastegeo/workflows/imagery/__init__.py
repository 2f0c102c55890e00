"""The parts of imagery preparation: tiles, the grid, the mosaic, the stretch, the files it leaves."""
