"""Graph and initial places -> places: the sampled layouts of UMAP and LargeVis, the full layout of t-SNE."""

from vicinal.layout.forces import Forces as Forces
from vicinal.layout.forces import Kernel as Kernel
from vicinal.layout.forces import fit_ab as fit_ab
from vicinal.layout.full import FullLayout as FullLayout
from vicinal.layout.full import Phase as Phase
from vicinal.layout.sampled import Layout as Layout
from vicinal.layout.sampled import PartialLayout as PartialLayout
from vicinal.layout.sampled import Placement as Placement
from vicinal.layout.sampled import run_layout as run_layout
from vicinal.layout.schedule import Schedule as Schedule
