"""Random statements, as lines of text, over a scope that they extend."""

from __future__ import annotations

import random

from tests.dynamo.fuzz.words import Scope, Words

_INDENT = "    "


def indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]


class Sentences(Words):
    """Writes blocks of statements. `budget` counts the statements that the function may still get."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.budget = 0
        self.loops = 0
        self.nested = 0

    def block(self, scope: Scope, size: int, returns: str | None) -> list[str]:
        lines: list[str] = []
        for _ in range(max(1, size)):
            if self.budget <= 0:
                break
            self.budget -= 1
            lines += self.statement(scope, returns)
        return lines or ["pass"]

    def inside(self, scope: Scope, returns: str | None) -> list[str]:
        """A block under a compound statement. Most of the names that it binds are removed from the scope after it."""
        inner = scope if self.chance(0.25) else scope.inner()
        return indented(self.block(inner, self.rng.randint(1, 3), returns))

    def statement(self, scope: Scope, returns: str | None) -> list[str]:
        simple = (self._assign,) * 6 + (self._augment, self._unpack, self._attribute, self._item, self._method, self._method,
                  self._inplace, self._note, self._note, self._delete, self._global, self._exit, self._misc)  # fmt: skip
        compound = (self._if, self._if, self._for, self._for, self._while, self._try, self._try, self._with, self._match,
                    self._def, self._raise)  # fmt: skip
        deep = self.budget > 2
        chosen = self.rng.choice(compound if deep and self.chance(0.42) else simple)
        return chosen(scope, returns)

    # -- simple ------------------------------------------------------------------------------------------------
    def _kind(self) -> str:
        return self.rng.choice(("T",) * 6 + ("Z", "I", "I", "I", "S", "L", "LT", "D", "U", "E", "O", "F", "B"))

    def _assign(self, s: Scope, r: str | None) -> list[str]:
        kind = self._kind()
        value = self.expr(kind, s, 3)
        known = s.names[kind]
        name = self.rng.choice(known) if known and self.chance(0.4) else s.fresh(kind)
        s.add(kind, name)
        if self.chance(0.08):
            other = s.fresh(kind)
            s.add(kind, other)
            return [f"{name} = {other} = {value}"]
        return [f"{name} = {value}"]

    def _augment(self, s: Scope, r: str | None) -> list[str]:
        kind = self.rng.choice([k for k in ("T", "I", "L", "S", "D", "E", "LT") if s.names[k]] or ["I"])
        if not s.names[kind]:
            return self._assign(s, r)
        name = self.rng.choice(s.names[kind])
        ops = {"T": ("+=", "-=", "*="), "I": ("+=", "-=", "*=", "|="), "L": ("+=",), "S": ("+=",), "D": ("|=",),
               "E": ("|=", "&=", "-="), "LT": ("+=",)}  # fmt: skip
        other = "I" if kind == "T" and self.chance(0.5) else kind
        if kind in ("L", "LT"):
            return [f"{name} += {self.expr(kind, s)}[:2]"]
        return [f"{name} {self.rng.choice(ops[kind])} {self.expr(other, s)}"]

    def _unpack(self, s: Scope, r: str | None) -> list[str]:
        choice = self.rng.randint(0, 5)
        if choice == 0:
            a, b = s.fresh("I"), s.fresh("S")
            text = [f"{a}, {b} = {self.expr('U', s)}"]
            s.add("I", a), s.add("S", b)
        elif choice == 1:
            a, b = s.fresh("I"), s.fresh("L")
            text = [f"{a}, *{b} = {self.expr('L', s)}"]
            s.add("I", a), s.add("L", b)
        elif choice == 2 and len(s.names["T"]) > 1:
            a, b = self.rng.sample(s.names["T"], 2)
            text = [f"{a}, {b} = {b}, {a}"]
        elif choice == 3:
            a, b = s.fresh("T"), s.fresh("T")
            text = [f"{a}, {b} = {self.expr('LT', s)}"]
            s.add("T", a), s.add("T", b)
        elif choice == 4:
            a, b, c = s.fresh("I"), s.fresh("T"), s.fresh("S")
            text = [f"({a}, {b}), {c} = ({self.expr('I', s)}, {self.expr('T', s)}), {self.expr('S', s)}"]
            s.add("I", a), s.add("T", b), s.add("S", c)
        else:
            a, b = s.fresh("L"), s.fresh("I")
            text = [f"*{a}, {b} = gen({self.expr('I', s)} % 3 + 1)"]
            s.add("L", a), s.add("I", b)
        return text

    def _attribute(self, s: Scope, r: str | None) -> list[str]:
        target = self.expr("O", s, 1)
        return [self.pick(
            lambda: f"{target}.n = {self.expr('I', s)}",
            lambda: f"{target}.t = {self.expr('T', s)}",
            lambda: f"{target}.n += {self.expr('I', s)}",
            lambda: f"{target}.twice = {self.expr('I', s)}",
            lambda: f"{target}.t += {self.expr('I', s)}",
            lambda: f"{target}.new = {self.expr(self._kind(), s)}",
            lambda: f"setattr({target}, {self.expr('S', s, 0)} or 'p', {self.expr('I', s)})",
            lambda: f"Base.count += {self.expr('I', s)}",
        )]  # fmt: skip

    def _item(self, s: Scope, r: str | None) -> list[str]:
        return [self.pick(
            lambda: f"{self.expr('L', s, 0)}[{self.pick('0', '-1', self.expr('I', s))}] = {self.expr('I', s)}",
            lambda: f"{self.expr('D', s, 0)}[{self.expr('S', s)}] = {self.expr('I', s)}",
            lambda: f"{self.expr('D', s, 0)}['a'] += {self.expr('I', s)}",
            lambda: f"{self.expr('L', s, 0)}[{self.pick('1:', ':1', ':', '::2')}] = {self.expr('L', s)}",
            lambda: f"{self.expr('T', s, 0)}[{self.pick('0', '1', ':, 1', '0, 2')}] = {self.expr('I', s)}",
            lambda: f"{self.expr('LT', s, 0)}[0] = {self.expr('T', s)}",
            lambda: f"{self.expr('O', s, 0)}[{self.expr('I', s)}] = {self.expr('I', s)}",
        )]  # fmt: skip

    def _method(self, s: Scope, r: str | None) -> list[str]:
        e = self.expr
        return [self.pick(
            lambda: f"{e('L', s, 0)}.append({e('I', s)})",
            lambda: f"{e('L', s, 0)}.extend({e('L', s)}[:3])",
            lambda: f"{e('L', s, 0)}.insert({e('I', s)}, {e('I', s)})",
            lambda: f"{e('L', s, 0)}.pop({self.pick('', '0')})",
            lambda: f"{e('L', s, 0)}.remove({e('I', s)})",
            lambda: f"{e('L', s, 0)}.sort({self.pick('', 'reverse=True', 'key=lambda i: -i')})",
            lambda: f"{e('L', s, 0)}.reverse()",
            lambda: f"{e('LT', s, 0)}.append({e('T', s)})",
            lambda: f"{e('D', s, 0)}.update({e('D', s)})",
            lambda: f"{e('D', s, 0)}.pop({e('S', s)}, None)",
            lambda: f"{e('D', s, 0)}.setdefault({e('S', s)}, {e('I', s)})",
            lambda: f"{e('D', s, 0)}.popitem()",
            lambda: f"{e('E', s, 0)}.{self.pick('add', 'discard', 'remove')}({e('I', s)})",
            lambda: f"{e('O', s, 0)}.bump({e('I', s)})",
            lambda: f"{e('O', s, 0)}.log({e('S', s)})",
        )]  # fmt: skip

    def _inplace(self, s: Scope, r: str | None) -> list[str]:
        name = self.expr("T", s, 0)
        return [self.pick(
            lambda: f"{name}.add_({self.expr('I', s)})",
            lambda: f"{name}.mul_({self.pick('2', '-1', self.expr('T', s))})",
            lambda: f"{name}.copy_({self.expr('T', s)})",
            lambda: f"{name}.relu_()",
            lambda: f"{name}[1].add_({self.expr('I', s)})",
            lambda: f"{name}.t().sub_(1)",
            lambda: f"{name}.zero_()",
        )]  # fmt: skip

    def _note(self, s: Scope, r: str | None) -> list[str]:
        value = self.expr(self.rng.choice(("I", "S", "L", "T", "B", "U")), s)
        return [self.pick(lambda: f"note({value})", lambda: f"note({value})", lambda: f"log.append({value})",
                          lambda: f"print({self.expr('I', s)}, {self.expr('S', s)}, file=OUT)",
                          lambda: f"shout({value})")]  # fmt: skip

    def _delete(self, s: Scope, r: str | None) -> list[str]:
        choice = self.rng.randint(0, 4)
        if choice == 0 and len(s.names["I"]) > 1:
            name = self.rng.choice(s.names["I"])
            if name not in s.nonlocals:
                if self.chance(0.8):
                    s.names["I"].remove(name)
                return [f"del {name}"]
        if choice == 1:
            return [f"del {self.expr('D', s, 0)}[{self.expr('S', s)}]"]
        if choice == 2:
            return [f"del {self.expr('L', s, 0)}[{self.pick('0', '-1', ':1', '::2')}]"]
        if choice == 3:
            return [f"del {self.expr('O', s, 0)}.{self.pick('n', 'new', 't', 'twice')}"]
        return self._note(s, r)

    def _global(self, s: Scope, r: str | None) -> list[str]:
        return [self.pick("set_g({})".format(self.expr("I", s)), f"GL.append({self.expr('I', s)})",
                          f"GD[{self.expr('S', s)}] = {self.expr('I', s)}", f"globals_of()['G'] = {self.expr('I', s)}",
                          "note(G)", f"GT.add_({self.expr('I', s)})")]  # fmt: skip

    def _exit(self, s: Scope, r: str | None) -> list[str]:
        if self.loops and self.chance(0.5):
            return [f"if {self.expr('B', s)}:", _INDENT + self.pick("break", "continue")]
        if r is not None and self.chance(0.5):
            return [f"if {self.expr('B', s)}:", f"{_INDENT}return {self.expr(r, s)}"]
        return self._note(s, r)

    def _misc(self, s: Scope, r: str | None) -> list[str]:
        return self.pick(
            lambda: f"assert {self.expr('B', s)}, {self.expr('S', s)}",
            lambda: f"import math as m{self.rng.randint(0, 3)}",
            lambda: "pass",
            lambda: f"torch.manual_seed({self.rng.randint(0, 3)})" if self.chance(0.1) else "...",
            lambda: f"{self.expr(self._kind(), s)}",
            lambda: f"counter = itertools.count({self.expr('I', s)}); note(next(counter)); shout(1); note(next(counter))",
            lambda: self._consumed(f"iter({self.expr('L', s)})"),
            lambda: self._consumed(f"gen({self.expr('I', s)} % 4)"),
            lambda: self._consumed(f"zip({self.expr('L', s)}, {self.expr('S', s)})"),
            lambda: self._consumed(f"map(echo, {self.expr('L', s)})"),
            lambda: self._consumed(f"enumerate(reversed({self.expr('L', s)}))"),
            lambda: self._consumed(f"filter(lambda i: i != 1, {self.expr('L', s)})"),
            lambda: self._consumed(f"iter({self.expr('D', s)}.items())"),
            lambda: self._consumed(f"itertools.cycle({self.expr('L', s)}[:2])").replace("list(it)", "next(it, 0)"),
        ).split("; ")

    def _consumed(self, iterator: str) -> str:
        """An iterator consumed partly, perhaps with a graph break between."""
        return f"it = {iterator}; note(next(it, None)); {self.pick('shout(2)', 'pass')}; note(list(it))"

    def _raise(self, s: Scope, r: str | None) -> list[str]:
        text = self.pick(
            lambda: f"raise Oops({self.expr('I', s)})",
            lambda: f"raise Worse({self.expr('S', s)}, code={self.expr('I', s)})",
            lambda: f"raise ValueError({self.expr('S', s)})",
            lambda: "raise KeyError",
            lambda: f"raise Oops({self.expr('I', s)}) from {self.pick('None', 'ValueError(1)')}",
            lambda: f"raise StopIteration({self.expr('I', s)})",
            "raise",
        )
        return [f"if {self.expr('B', s)}:", _INDENT + text]

    # -- compound ----------------------------------------------------------------------------------------------
    def _if(self, s: Scope, r: str | None) -> list[str]:
        lines = [f"if {self.expr('B', s)}:", *self.inside(s, r)]
        if self.chance(0.25):
            lines += [f"elif {self.expr('B', s)}:", *self.inside(s, r)]
        if self.chance(0.5):
            lines += ["else:", *self.inside(s, r)]
        return lines

    def _for(self, s: Scope, r: str | None) -> list[str]:
        if self.loops >= 2:
            return self._if(s, r)
        i = s.fresh("I", "i")
        kind, over = "I", self.pick(
            lambda: f"range({self.expr('I', s)} % 4)",
            lambda: f"list({self.expr('L', s)})[:4]",
            lambda: f"gen({self.expr('I', s)} % 4)",
            lambda: f"sorted({self.expr('E', s)})",
            lambda: f"reversed({self.expr('L', s)}[:3])",
        )
        target = i
        shape = self.rng.randint(0, 4)
        if shape == 0:
            kind, over = "T", f"{self.expr('LT', s)}[:3]"
        elif shape == 1:
            other = s.fresh("I", "j")
            target, over = f"{i}, {other}", f"enumerate({self.expr('L', s)}[:3])"
            s.add("I", other)
        elif shape == 2:
            other = s.fresh("S", "k")
            target, over = f"{other}, {i}", f"list({self.expr('D', s)}.items())[:3]"
            s.add("S", other)
        s.add(kind, i)
        self.loops += 1
        body = self.inside(s, r)
        self.loops -= 1
        lines = [f"for {target} in {over}:", *body]
        if self.chance(0.25):
            lines += ["else:", *self.inside(s, r)]
        return lines

    def _while(self, s: Scope, r: str | None) -> list[str]:
        if self.loops >= 2:
            return self._if(s, r)
        c = s.fresh("I", "c")
        self.loops += 1
        body = self.inside(s, r)
        self.loops -= 1
        lines = [f"{c} = {self.rng.randint(0, 4)}", f"while {c} > 0{self.pick('', ' and ' + self.expr('B', s))}:",
                 f"{_INDENT}{c} -= 1", *body]  # fmt: skip
        if self.chance(0.25):
            lines += ["else:", *self.inside(s, r)]
        return lines

    def _try(self, s: Scope, r: str | None) -> list[str]:
        lines = ["try:", *self.inside(s, r)]
        if self.chance(0.6):
            lines.append(_INDENT + self.pick(
                lambda: f"raise Oops({self.expr('I', s)})", lambda: f"note({self.expr('D', s)}['zz'])",
                lambda: f"note({self.expr('L', s)}[{self.expr('I', s)}])", lambda: f"note(1 // {self.expr('I', s)})",
                lambda: f"note({self.expr('I', s)} + {self.expr('S', s)})", lambda: "note(next(iter([])))",
                lambda: f"thrower({self.expr('I', s)})", lambda: "torch.zeros(2, 3) + torch.zeros(4)",
            ))  # fmt: skip
        caught = self.chance(0.8)
        if caught:
            for _ in range(self.rng.randint(1, 2)):
                types = self.pick("Oops", "Worse", "Exception", "(KeyError, IndexError)", "ValueError", "LookupError",
                                  "(TypeError, ArithmeticError)", "Oops", "Exception")  # fmt: skip
                name = self.chance(0.6)
                lines.append(f"except {types} as e:" if name else f"except {types}:")
                if name:
                    lines.append(_INDENT + self.pick("note(type(e).__name__)", "note(str(e))", "note(e.args)", "kept.append(e)",
                                                     "note(repr(e.__context__))", "note(e.__class__)"))  # fmt: skip
                lines += self.inside(s, r)
                if self.chance(0.25):
                    lines.append(_INDENT + self.pick("raise", "raise Worse('again')", "raise Oops(1) from e" if name else "raise",
                                                     "raise ValueError('v') from None"))  # fmt: skip
                if types == "Exception":
                    break
            if self.chance(0.3):
                lines += ["else:", *self.inside(s, r)]
        if not caught or self.chance(0.4):
            lines += ["finally:", *self.inside(s, r)]
        return lines

    def _with(self, s: Scope, r: str | None) -> list[str]:
        name = s.fresh("I", "m")
        manager = self.pick(
            lambda: f"Manager({self.expr('I', s)}) as {name}",
            lambda: f"Manager({self.expr('I', s)}, swallow={self.expr('B', s)})",
            lambda: f"managed({self.expr('I', s)}) as {name}",
            lambda: "torch.no_grad()",
            lambda: f"contextlib.suppress({self.pick('Oops', 'LookupError', 'Exception')})",
            lambda: f"Manager({self.expr('I', s)}) as {name}, managed({self.expr('I', s)})",
            lambda: f"contextlib.nullcontext({self.expr('I', s)}) as {name}",
        )
        if f"as {name}" in manager:
            s.add("I", name)
        body = self.inside(s, r)
        if self.chance(0.2):
            body.append(_INDENT + f"thrower({self.expr('I', s)})")
        return [f"with {manager}:", *body]

    def _match(self, s: Scope, r: str | None) -> list[str]:
        subject = self.expr(self.rng.choice(("I", "L", "D", "U", "O", "S")), s)
        lines = [f"match {subject}:"]
        name, rest = s.fresh("I", "p"), s.fresh("L", "q")
        cases = self.rng.sample((
            "case 0 | 1:", f"case [{name}, *{rest}]:", f"case {{'a': {name}, **{rest}}}:", f"case Base(n={name}):",
            f"case Data({name}):", "case 'a' | 'ab':", f"case (int() as {name}, str()):", f"case int({name}) if {name} > 2:",
            "case []:", f"case [_, _, {name}]:", "case None:", f"case Pair(a={name}):",
        ), 3)  # fmt: skip
        for case in cases:
            lines.append(_INDENT + case)
            lines += indented([f"{_INDENT}note({name if name in case else 0})", *self.inside(s, r)])
        if self.chance(0.6):
            lines += [f"{_INDENT}case _:", *indented(self.inside(s, r))]
        return lines

    def _def(self, s: Scope, r: str | None) -> list[str]:
        if self.nested:
            return self._assign(s, r)
        name = s.fresh("I", "f")
        kind = self.rng.choice(("T", "T", "I"))
        inner = s.inner()
        head: list[str] = []
        writable = [n for n in s.names["I"] if not n.startswith("G") and n not in ("n", "x")]
        if writable and self.chance(0.5):
            shared = self.rng.choice(writable)
            inner.nonlocals = [shared]
            head = [f"nonlocal {shared}", f"{shared} += {self.rng.randint(1, 3)}"]
        inner.add("T", "x")
        inner.add("I", "n")
        loops, self.loops = self.loops, 0
        self.nested += 1
        # The nested function binds fresh names only, so that it does not make names of the outer function local.
        visible = {k: list(v) for k, v in inner.names.items()}
        body = indented([*head, *self._reading(inner, visible), f"return {self.expr(kind, inner)}"])
        self.nested -= 1
        self.loops = loops
        s.functions[kind].append(name)
        default = self.expr("I", s, 1)
        return [f"def {name}(x, n={default}):", *body]

    def _reading(self, s: Scope, visible: dict[str, list[str]]) -> list[str]:
        lines = []
        for _ in range(self.rng.randint(0, 2)):
            kind = self.rng.choice(("T", "I", "L"))
            value = self.expr(kind, s)
            new = s.fresh(kind, "n")
            s.add(kind, new)
            lines.append(f"{new} = {value}")
            if self.chance(0.5):
                lines += self._note(s, None)
        return lines
