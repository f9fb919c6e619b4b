"""Neighbor table -> graph: fuzzy memberships, entropic probabilities, set operations, supervision."""

from vicinal.graph.entropic import entropic_bipartite_graph as entropic_bipartite_graph
from vicinal.graph.entropic import entropic_graph as entropic_graph
from vicinal.graph.fuzzy import bipartite_graph as bipartite_graph
from vicinal.graph.fuzzy import fuzzy_graph as fuzzy_graph
from vicinal.graph.graph import Graph as Graph
