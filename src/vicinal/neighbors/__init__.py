"""Rows -> neighbor table: metrics, exact and approximate search, rows that arrive over time."""

from vicinal.neighbors.index import NeighborIndex as NeighborIndex
from vicinal.neighbors.online import OnlineNeighbors as OnlineNeighbors
from vicinal.neighbors.table import Neighbors as Neighbors
