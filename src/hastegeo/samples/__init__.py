"""Sample data from a seed: imagery before and after a storm, footprints and ground truth."""

from hastegeo.samples.layout import Damage
from hastegeo.samples.scene import SceneManifest, make_scene

__all__ = ["Damage", "SceneManifest", "make_scene"]
