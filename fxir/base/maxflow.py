"""Maximum flow by Dinic's algorithm, and the minimum cut that it proves.

Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970. Nodes are
small integers; the algorithm does not depend on graphs of ops.
"""

from __future__ import annotations

from collections import deque
from typing import Final

INFINITE: Final = 1 << 62


class FlowNetwork:
    """A directed network with integer capacities. Edge k and its reverse k^1 are adjacent in the list."""

    def __init__(self, size: int) -> None:
        self._heads: list[int] = []
        self._room: list[int] = []
        self._edges: list[list[int]] = [[] for _ in range(size)]

    def add_edge(self, a: int, b: int, capacity: int) -> None:
        """An edge a -> b."""
        self._edges[a].append(len(self._heads))
        self._heads.append(b)
        self._room.append(capacity)
        self._edges[b].append(len(self._heads))
        self._heads.append(a)
        self._room.append(0)

    def max_flow(self, source: int, sink: int) -> int:
        """The value of the flow; afterwards `reaching` gives the cut. Raises: ValueError if no finite cut exists."""
        flow = 0
        while (level := self._levels(source, sink)) is not None:
            position = [0] * len(self._edges)
            while pushed := self._augment(source, sink, level, position):
                flow += pushed
                if flow >= INFINITE:
                    raise ValueError("max_flow: source and sink are joined by edges of infinite capacity only")
        return flow

    def reaching(self, sink: int) -> set[int]:
        """Nodes from which the sink can still be reached: its side of the minimum cut nearest to it."""
        seen = {sink}
        queue = deque([sink])
        while queue:
            b = queue.popleft()
            for k in self._edges[b]:
                a = self._heads[k]
                if self._room[k ^ 1] > 0 and a not in seen:
                    seen.add(a)
                    queue.append(a)
        return seen

    def _levels(self, source: int, sink: int) -> list[int] | None:
        level = [-1] * len(self._edges)
        level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for k in self._edges[a]:
                b = self._heads[k]
                if self._room[k] > 0 and level[b] < 0:
                    level[b] = level[a] + 1
                    queue.append(b)
        return level if level[sink] >= 0 else None

    def _augment(self, source: int, sink: int, level: list[int], position: list[int]) -> int:
        """Push along one path of the level graph (an explicit stack: graphs are deeper than Python's recursion)."""
        path: list[int] = []
        node = source
        while node != sink:
            edges = self._edges[node]
            while position[node] < len(edges):
                k = edges[position[node]]
                if self._room[k] > 0 and level[self._heads[k]] == level[node] + 1:
                    break
                position[node] += 1
            else:
                if not path:
                    return 0
                level[node] = -1
                node = self._heads[path.pop() ^ 1]
                position[node] += 1
                continue
            path.append(k)
            node = self._heads[k]
        pushed = min(self._room[k] for k in path)
        for k in path:
            self._room[k] -= pushed
            self._room[k ^ 1] += pushed
        return pushed
