"""Random expressions of a given kind, over the variables in scope.

Kinds: T a (2, 3) tensor, Z a 0-d tensor, I an int, F a float, S a str, B a bool, L a list of ints, LT a list of
tensors, D a dict from str to int, U a tuple (int, str), E a set of ints, O an object of the program's classes. Tensors
hold small whole numbers, so that every order of evaluation gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS = ("T", "Z", "I", "F", "S", "B", "L", "LT", "D", "U", "E", "O")


@dataclass
class Scope:
    """The names that hold a value of each kind, and permissions of the function.

    data: branches on tensor values are allowed.
    """

    names: dict[str, list[str]] = field(default_factory=lambda: {k: [] for k in KINDS})
    functions: dict[str, list[str]] = field(default_factory=lambda: {k: [] for k in KINDS})
    data: float = 0.05
    counter: list[int] = field(default_factory=lambda: [0])
    globals: list[str] = field(default_factory=list)
    nonlocals: list[str] = field(default_factory=list)

    def inner(self) -> Scope:
        """The scope of a nested function: it sees all names, and names added to it are not visible outside."""
        return Scope({k: list(v) for k, v in self.names.items()}, {k: list(v) for k, v in self.functions.items()},
                     self.data, self.counter, list(self.globals))  # fmt: skip

    def fresh(self, kind: str, hint: str = "v") -> str:
        self.counter[0] += 1
        return f"{hint}{self.counter[0]}"

    def add(self, kind: str, name: str) -> None:
        for other in self.names.values():
            if name in other:
                other.remove(name)
        self.names[kind].append(name)


class Words:
    """Writes expressions. `depth` bounds their nesting."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def pick(self, *choices: str | Callable[[], str]) -> str:
        chosen = self.rng.choice(choices)
        return chosen if isinstance(chosen, str) else chosen()

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def expr(self, kind: str, scope: Scope, depth: int = 2) -> str:
        names = scope.names[kind]
        if names and (depth <= 0 or self.chance(0.4)):
            return self.rng.choice(names)
        if depth > 0 and self.chance(0.08):
            return self._odd(kind, scope, depth)
        return getattr(self, "_" + kind)(scope, depth - 1)

    def _odd(self, kind: str, scope: Scope, depth: int) -> str:
        """Forms that every kind has."""
        e = lambda k: self.expr(k, scope, depth - 1)  # noqa: E731
        forms = [
            lambda: f"({e(kind)} if {e('B')} else {e(kind)})",
            lambda: f"({e('B')} and {e(kind)} or {e(kind)})",
            lambda: f"(lambda q: {e(kind)})({e('I')})",
            lambda: f"(lambda q={e(kind)}, *r, **k: q)()",
            lambda: f"[{e(kind)}, {e(kind)}][{e('I')} % 2]",
            lambda: f"{{'a': {e(kind)}, 'b': {e('I')}}}['a']",
            lambda: f"echo({e(kind)})",
            lambda: f"echo(value={e(kind)})",
            lambda: f"echo(*[{e(kind)}])",
            lambda: f"functools.partial(echo, {e(kind)})()",
            lambda: f"next(iter([{e(kind)}]))",
            lambda: f"getattr(Holder({e(kind)}), 'value')",
            lambda: f"Holder({e(kind)}).get()",
            lambda: f"first(*({e(kind)}, {e('I')}), **{{'k': {e('S')}}})",
            lambda: f"broken({e(kind)})",
        ]
        if scope.functions[kind]:
            name = self.rng.choice(scope.functions[kind])
            forms += [lambda: f"{name}({e('T')}, {e('I')})"] * 6
            forms.append(lambda: f"{name}({e('T')}, n={e('I')})")
            forms.append(lambda: f"{name}(*({e('T')}, {e('I')}))")
            forms.append(lambda: f"{name}(n={e('I')}, x={e('T')})")
        if kind not in ("B",) and self.chance(0.5):
            new = scope.fresh(kind, "w")
            text = f"({new} := {e(kind)})"
            scope.add(kind, new)
            return text
        return self.pick(*forms)

    # -- tensors -----------------------------------------------------------------------------------------------
    def _T(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"({e('T')} {self.pick('+', '-', '*')} {e('T')}) % 7",
            lambda: f"({e('T')} {self.pick('+', '-', '*')} {e('I')})",
            lambda: f"({e('I')} {self.pick('+', '-', '*')} {e('T')})",
            lambda: f"torch.relu({e('T')})",
            lambda: f"-{e('T')}",
            lambda: f"{e('T')}.clone()",
            lambda: f"{e('T')}.abs()",
            lambda: f"({e('T')} - {e('Z')})",
            lambda: f"torch.where({e('T')} > {e('I')}, {e('T')}, {e('T')})",
            lambda: f"{e('T')}.t().clone().t()",
            lambda: f"{e('T')}.view(3, 2).reshape(2, 3)",
            lambda: "torch.zeros(2, 3)",
            lambda: f"torch.stack({e('LT')} + [{e('T')}]).sum(0)",
            lambda: f"sum({e('LT')}, {e('T')})",
            lambda: f"{e('T')}[:, [2, 1, 0]]",
            lambda: f"torch.cat([{e('T')}[:1], {e('T')}[1:]])",
            lambda: f"{e('O')}.t",
            lambda: f"{e('O')}.scale({e('T')})",
            lambda: f"({e('O')} @ {e('T')})",
            lambda: f"functools.reduce(lambda a, b: (a + b) % 5, {e('LT')}, {e('T')})",
            lambda: f"[t * 2 for t in [{e('T')}, {e('T')}]][-1]",
            lambda: f"{e('T')}.add({e('I')}).detach()",
            lambda: f"{e('T')}.clamp(-3, 3)",
            lambda: "GT",
            lambda: f"{e('T')}[...]",
            lambda: f"{e('T')}.double().float()",
            lambda: f"{e('T')}.to(torch.int64).float()",
            lambda: f"{e('T')}.T.contiguous().T",
            lambda: f"{e('T')}.unsqueeze(0).expand(2, 2, 3)[{self.pick('0', '1', '-1')}]",
            lambda: f"{e('T')}.masked_fill({e('T')} > {e('I')}, {e('I')})",
            lambda: f"torch.from_numpy({e('T')}.detach().numpy().copy())",
            lambda: f"({e('T')} * np.float32({e('I')}))",
            lambda: f"Double.apply({e('T')})",
            lambda: f"{e('T')}.flip({self.pick('0', '1', '[0, 1]')})",
        )

    def _Z(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"{e('T')}.sum()",
            lambda: f"{e('T')}.max()",
            lambda: f"{e('T')}[{self.pick('0', '1', '-1')}, {self.pick('0', '2', '-1')}]",
            lambda: f"({e('Z')} + {e('I')}) % 5",
            lambda: f"({e('T')} * {e('T')}).sum() % 9",
            lambda: f"torch.tensor({e('I')})",
            lambda: f"max({e('T')}.sum(), key=None) if False else {e('T')}.min()",
        )

    # -- numbers and text --------------------------------------------------------------------------------------
    def _I(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        if d < 0 or self.chance(0.2):
            return str(self.rng.randint(-2, 5))
        if self.chance(s.data):
            return self.pick(lambda: f"int({e('Z')})", lambda: f"{e('Z')}.item()", lambda: f"len({e('T')}.tolist())")
        return self.pick(
            lambda: f"({e('I')} {self.pick('+', '-', '*')} {e('I')}) % 23",
            lambda: f"({e('I')} {self.pick('&', '|', '^')} {e('I')})",
            lambda: f"({e('I')} {self.pick('//', '%')} {self.pick('2', '3', e('I'))})",
            lambda: f"-{e('I')}",
            lambda: f"~{e('I')}",
            lambda: f"len({self.pick(e('L'), e('S'), e('D'), e('T'), e('E'), e('LT'))})",
            lambda: f"{e('T')}.shape[{self.pick('0', '1', '-1')}]",
            lambda: f"{e('T')}.size(1)",
            lambda: f"{e('T')}.ndim",
            lambda: f"int({e('B')})",
            lambda: f"{e('L')}[{self.pick('0', '-1', e('I'))}]",
            lambda: f"{e('D')}.get({e('S')}, {e('I')})",
            lambda: f"{e('D')}['a']",
            lambda: f"{e('U')}[0]",
            lambda: f"sum({e('L')})",
            lambda: f"max({e('I')}, {e('I')})",
            lambda: f"min({e('L')}, default={e('I')})",
            lambda: f"abs({e('I')})",
            lambda: f"divmod({e('I')}, 3)[{self.pick('0', '1')}]",
            lambda: f"{e('O')}.{self.pick('n', 'n', 'twice', 'count', 'missing')}",
            lambda: f"len({e('O')})",
            lambda: f"{e('O')}[{e('I')}]",
            lambda: f"{e('O')}({e('I')})",
            lambda: f"type({e('O')}).make({e('I')}).n",
            lambda: f"fact({e('I')} % 5)",
            lambda: f"many({e('I')}, *{e('L')}, k={e('I')})",
            lambda: f"many({e('I')}, **{e('D')})",
            lambda: f"sum(gen({e('I')} % 4))",
            lambda: f"next(gen({e('I')}), {e('I')})",
            lambda: f"sum(i * 2 for i in {e('L')} if i != {e('I')})",
            lambda: "G",
            lambda: f"counted({e('I')})",
            lambda: f"cached({e('I')} % 3)",
            lambda: f"{e('L')}.count({e('I')})",
            lambda: f"{e('L')}.index({e('I')})",
            lambda: f"{e('S')}.find('a')",
            lambda: f"operator.add({e('I')}, {e('I')})",
            lambda: f"functools.reduce(operator.xor, {e('L')}, {e('I')})",
            lambda: f"round({e('F')})",
            lambda: f"{e('L')}.pop() if {e('B')} else {e('I')}",
        )

    def _F(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: self.rng.choice(("0.5", "-1.5", "2.0", "0.0", "-0.0", "1e3", "float('inf')")),
            lambda: f"{e('I')} / 2",
            lambda: f"float({e('I')})",
            lambda: f"({e('F')} {self.pick('+', '-', '*')} {e('F')})",
            lambda: f"math.floor({e('F')} % 5)",
            lambda: f"math.sqrt(abs({e('I')}))",
            lambda: f"{e('I')} / {e('I')}",
        )

    def _S(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        if d < 0 or self.chance(0.2):
            return repr(self.rng.choice(("a", "b", "ab", "", "key", "x y")))
        return self.pick(
            lambda: f"({e('S')} + {e('S')})[:9]",
            lambda: f"f'{{{self.pick('G', *s.names['I'])}}}:{{{self.pick('G', *s.names['S'])}!r:>4}}'",
            lambda: f"f'{{{self.pick('G', *s.names['I'])}:{{3}}}}'",
            lambda: f"{e('S')}.upper()",
            lambda: f"{e('S')}[::-1]",
            lambda: f"','.join([{e('S')}, {e('S')}])",
            lambda: f"str({self.pick(e('I'), e('L'), e('U'), e('D'), e('O'), e('F'))})",
            lambda: f"repr({self.pick(e('S'), e('L'), e('O'), e('E'))})",
            lambda: f"'%d-%s' % ({e('I')}, {e('S')})",
            lambda: f"'{{}}/{{k}}'.format({e('I')}, k={e('S')})",
            lambda: f"type({self.pick(e('O'), e('T'), e('I'))}).__name__",
            lambda: f"{e('U')}[1]",
            lambda: f"format({e('I')}, '>3')",
            lambda: f"','.join(str(i) for i in {e('L')})",
            lambda: f"','.join(sorted({e('D')}))",
            lambda: f"str({e('T')}.dtype)",
            lambda: f"{e('S')}.replace('a', {e('S')})[:8]",
            lambda: f"kind({self.pick(e('I'), e('S'), e('L'), e('D'), e('U'), e('O'), 'None')})",
        )

    def _B(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        if self.chance(s.data):
            return self.pick(lambda: f"{e('Z')} > {e('I')}", lambda: f"bool({e('Z')})", lambda: f"({e('T')} > 0).any()")
        return self.pick(
            lambda: f"{e('I')} {self.pick('<', '<=', '==', '!=', '>', '>=')} {e('I')}",
            lambda: f"{e('I')} < {e('I')} <= {e('I')}",
            lambda: f"not {e('B')}",
            lambda: f"({e('B')} and {e('B')})",
            lambda: f"({e('B')} or {e('B')})",
            lambda: f"{e('S')} == {e('S')}",
            lambda: f"{e('S')} in {self.pick(e('D'), e('S'))}",
            lambda: f"{e('I')} {self.pick('in', 'not in')} {self.pick(e('L'), e('E'), e('O'))}",
            lambda: f"isinstance({self.pick(e('I'), e('O'), e('T'))}, {self.pick('int', 'str', 'Base', 'torch.Tensor', '(int, Base)')})",
            lambda: f"{self._same(s)}",
            lambda: f"any(i > {e('I')} for i in {e('L')})",
            lambda: f"all({e('L')})",
            lambda: f"hasattr({e('O')}, {self.pick(repr('n'), repr('zz'))})",
            lambda: f"{e('L')} {self.pick('==', '<', '!=')} {e('L')}",
            lambda: f"bool({self.pick(e('O'), e('L'), e('S'), e('D'), e('I'))})",
            lambda: f"{e('O')} {self.pick('==', '!=', '<')} {e('O')}",
            lambda: f"{e('E')} {self.pick('<=', '==', '>')} {e('E')}",
            lambda: f"callable({self.pick(e('O'), 'echo', e('I'))})",
            lambda: f"{e('U')} {self.pick('==', '<')} {e('U')}",
        )

    def _same(self, s: Scope) -> str:
        kind = self.rng.choice(("T", "L", "O", "D", "LT"))
        if not s.names[kind]:
            return "True"
        return f"{self.rng.choice(s.names[kind])} {self.pick('is', 'is not')} {self.rng.choice(s.names[kind])}"

    # -- containers --------------------------------------------------------------------------------------------
    def _L(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"[{e('I')}, {e('I')}]",
            lambda: f"[{e('I')}]",
            lambda: f"[i * {e('I')} for i in range({e('I')} % 4)]",
            lambda: f"[i for i in {e('L')} if i % 2]",
            lambda: "[(i, j)[0] for i in range(2) for j in range(i + 1)]",
            lambda: f"[*{e('L')}, {e('I')}]",
            lambda: f"({e('L')} + {e('L')})[:6]",
            lambda: f"list(range({e('I')} % 5))",
            lambda: f"sorted({self.pick(e('L'), e('E'))})",
            lambda: f"sorted({e('L')}, key=lambda i: -i)",
            lambda: f"{e('L')}[{self.pick('::-1', '1:', ':2', '-2:')}]",
            lambda: f"list(map(lambda i: i + 1, {e('L')}))",
            lambda: f"list(filter(None, {e('L')}))",
            lambda: f"list({e('D')}.values())",
            lambda: f"[a + b for a, b in zip({e('L')}, {e('L')})]",
            lambda: f"[k for k, _ in enumerate({e('L')}, {e('I')})]",
            lambda: f"list(gen({e('I')} % 4))",
            lambda: f"list(guarded({e('I')} % 4))",
            lambda: f"list({e('O')})",
            lambda: f"{e('L')} * 2",
            lambda: f"list(itertools.chain({e('L')}, {e('E')}))" if self.chance(0.3) else f"list(itertools.chain({e('L')}, {e('L')}))",
            lambda: f"list(itertools.islice(itertools.count({e('I')}), 3))",
            lambda: f"list(reversed({e('L')}))",
            lambda: f"{e('L')}.copy()",
            lambda: f"list(zip(*[{e('L')}, {e('L')}]))[:0] or {e('L')}",
            lambda: "GL",
        )

    def _LT(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"[{e('T')}, {e('T')}]",
            lambda: f"[t + 1 for t in {e('LT')}]",
            lambda: f"[{e('T')} for _ in range({e('I')} % 3)]",
            lambda: f"{e('LT')}[:2]",
            lambda: f"list(tgen({e('T')}, {e('I')} % 3))",
            lambda: f"[{e('T')}] * 2",
        )

    def _D(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"{{{e('S')}: {e('I')}, 'a': {e('I')}}}",
            lambda: f"{{**{e('D')}, 'b': {e('I')}}}",
            lambda: f"dict(a={e('I')}, c={e('I')})",
            lambda: f"({e('D')} | {e('D')})",
            lambda: f"{{k: v + 1 for k, v in {e('D')}.items()}}",
            lambda: f"dict(zip('ab', {e('L')}))",
            lambda: f"dict.fromkeys('ab', {e('I')})",
            lambda: f"dict({e('D')}, a={e('I')})",
            lambda: "GD",
            lambda: f"collections.defaultdict(int, {e('D')})",
            lambda: f"collections.Counter({e('S')})",
        )

    def _U(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"({e('I')}, {e('S')})",
            lambda: f"tuple([{e('I')}, {e('S')}])",
            lambda: f"({e('I')}, *({e('S')},))",
            lambda: f"Pair({e('I')}, {e('S')})",
            lambda: f"Pair({e('I')}, {e('S')})._replace(a={e('I')})",
        )

    def _E(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"{{{e('I')}, {e('I')}}}",
            lambda: f"set({e('L')})",
            lambda: f"({e('E')} {self.pick('|', '&', '-', '^')} {e('E')})",
            lambda: f"{{i % 3 for i in {e('L')}}}",
            lambda: f"frozenset({e('L')})",
        )

    def _O(self, s: Scope, d: int) -> str:
        e = lambda k: self.expr(k, s, d)  # noqa: E731
        return self.pick(
            lambda: f"Base({e('I')}, {e('T')})",
            lambda: f"Derived({e('I')}, {e('T')})",
            lambda: f"Derived({e('I')}, {e('T')}, extra={e('S')})",
            lambda: f"Slotted({e('I')}, {e('T')})",
            lambda: f"Data({e('I')}, {e('T')})",
            lambda: f"({e('O')} + {e('I')})",
            lambda: f"({e('I')} + {e('O')})",
            lambda: f"dataclasses.replace(Data({e('I')}, {e('T')}), n={e('I')})",
        )
