"""The local runner and the process that carries out its tasks."""
