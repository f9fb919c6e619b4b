"""How faithful a map is to its data, and the losses of the survey."""

from vicinal.quality.measures import *  # noqa: F403
