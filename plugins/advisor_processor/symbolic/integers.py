"""Integer expressions of C, C++ and Fortran, as written -> formulas; None if the source does not give the value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import sympy

from advisor_processor.symbolic.integer_functions import Quotient, Remainder, is_logical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    #: The parameters of a macro (None: it takes none) and what it stands for.
    Macro = tuple[tuple[str, ...] | None, str]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<real>(?:\d+\.\d*|\.\d+)(?:[eEdD][+-]?\d+)?[fFlL]?(?:_\w+)?|\d+[eEdD][+-]?\d+\w*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|\d+)(?:[uUlLzZ]*|_\w+)(?![.\w])|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<dotted>\.(?:and|or|not|eq|ne|lt|le|gt|ge|true|false)\.)"
    r"|(?P<sign>->|\+\+|--|<<|>>|<=|>=|==|!=|/=|&&|\|\||\*\*|::|[-+*/%<>=!?:~&|^()\[\],.]))",
    re.IGNORECASE,
)
_LONGEST: Final = 2000
_NESTED: Final = 60
_DOTTED: Final = {
    ".and.": "&&", ".or.": "||", ".not.": "!", ".eq.": "==", ".ne.": "!=", ".lt.": "<", ".le.": "<=", ".gt.": ">",
    ".ge.": ">=", ".true.": "1", ".false.": "0", "/=": "!=",
}  # fmt: skip
_TYPE_WORDS: Final = frozenset({
    "int", "long", "short", "unsigned", "signed", "char", "const", "size_t", "ptrdiff_t", "int64_t", "uint64_t",
    "ssize_t", "int32_t", "uint32_t", "double", "float", "void", "bool", "struct",
})  # fmt: skip
_SIZES: Final = {"double": 8, "float": 4, "char": 1, "short": 2, "int": 4, "long": 8, "bool": 1, "size_t": 8}
_LEVELS: Final = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
                  ("+", "-"), ("*", "/", "%"))  # fmt: skip
#: Functions that hand on their integer argument.
_THROUGH: Final = frozenset({"int", "nint", "dble", "size_t", "long", "abs", "labs", "int8"})


class Values(Protocol):
    """What a parser asks for while it reads an expression."""

    def name_value(self, name: str) -> Any:  # noqa: ANN401
        """Return the value of a variable or member such as ``grid.n``, None where it is not known."""

    def call_value(self, name: str, arguments: Sequence[Any], written: Sequence[str]) -> Any:  # noqa: ANN401
        """Return what a function gives, or an element of an array of Fortran."""

    def element_value(self, name: str, subscripts: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the value of an element of an array."""

    def is_nonnegative(self, value: Any) -> Any:  # noqa: ANN401
        """Return 1 where ``value`` is zero or more, else 0, as a formula."""

    def object_size(self, name: str) -> int | None:
        """Return the bytes of a named object or of what a pointer points at."""


class _UnknownTokenError(ValueError):
    """The text is no expression."""


def split_tokens(text: str, fortran: bool) -> list[str]:
    """Return the tokens of an expression; raises ``ValueError`` where it holds what is none."""
    found, at = [], 0
    text = text.strip()
    if len(text) > _LONGEST:
        raise _UnknownTokenError(text[:40])
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise _UnknownTokenError(text[at : at + 40])
        token = match["number"] or match[0].strip()
        token = _DOTTED.get(token.lower(), token) if match["dotted"] or (fortran and token == "/=") else token
        found.append(token.lower() if fortran and match["word"] else token)
        at = match.end()
    return found


def expand_macros(tokens: list[str], macros: Mapping[str, Macro], depth: int = 12) -> list[str]:
    """Return tokens with macros replaced by what they stand for."""
    if depth == 0 or not any(token in macros for token in tokens):
        return tokens
    found: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token not in macros:
            found.append(token)
            continue
        names, body = macros[token]
        inside = split_tokens(body, fortran=False)
        if names is not None:
            if at >= len(tokens) or tokens[at] != "(":
                found.append(token)
                continue
            given, at = _read_arguments(tokens, at)
            table = dict(zip(names, given, strict=False))
            inside = [each for one in inside for each in table.get(one, [one])]
        rest = {name: each for name, each in macros.items() if name != token}
        found += ["(", *expand_macros(inside, rest, depth - 1), ")"]
    return found


def _read_arguments(tokens: list[str], at: int) -> tuple[list[list[str]], int]:
    """Return the arguments in the parentheses at ``at``, and where they end."""
    given: list[list[str]] = [[]]
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        depth += (token in "([") - (token in ")]")
        at += 1
        if depth == 0:
            break
        if token == "," and depth == 1:
            given.append([])
        elif not (token == "(" and depth == 1):
            given[-1].append(token)
    return given, at


def parse_integer(text: str, values: Values, macros: Mapping[str, Macro], fortran: bool = False) -> Any:  # noqa: ANN401
    """Return the formula of an integer or logical expression (1 and 0); None where it is none, or not known."""
    try:
        tokens = expand_macros(split_tokens(text, fortran), macros)
        parser = _Parser(tokens, values, fortran)
        found = parser.parse()
    except (_UnknownTokenError, IndexError, RecursionError):
        return None
    return None if found is None or found.has(sympy.nan, sympy.zoo, sympy.oo) else sympy.expand(found)


def parse_condition(text: str, values: Values, macros: Mapping[str, Macro], fortran: bool = False) -> Any:  # noqa: ANN401
    """Return 1 where an expression is not zero, else 0, as a formula; None where that is not known."""
    found = parse_integer(text, values, macros, fortran)
    return None if found is None else sympy.expand(find_truth(found, values))


def find_truth(value: Any, values: Values) -> Any:  # noqa: ANN401
    """Return 1 for what is not zero, else 0."""
    if value.is_number:
        return sympy.Integer(int(value != 0))
    if is_logical(value):
        return value
    return 1 - values.is_nonnegative(value) + values.is_nonnegative(value - 1)


class _Parser:
    """Recursive descent over the levels of precedence; None is a value that is not known."""

    def __init__(self, tokens: list[str], values: Values, fortran: bool) -> None:
        self._tokens = tokens
        self._values = values
        self._fortran = fortran
        self._at = 0
        self._depth = 0

    def parse(self) -> Any:  # noqa: ANN401
        """Return the value of all tokens."""
        found = self._choice()
        if self._at != len(self._tokens):
            raise _UnknownTokenError(" ".join(self._tokens))
        return found

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise _UnknownTokenError(token)

    def _choice(self) -> Any:  # noqa: ANN401
        self._depth += 1
        if self._depth > _NESTED:
            raise _UnknownTokenError("nested too deeply")
        found = self._binary(0)
        if self._peek() == "?":
            self._take()
            yes = self._choice()
            self._expect(":")
            no = self._choice()
            found = self._choose(found, yes, no)
        self._depth -= 1
        return found

    def _choose(self, condition: Any, yes: Any, no: Any) -> Any:  # noqa: ANN401
        if condition is None:
            return yes if yes is not None and yes == no else None
        if condition.is_number:
            return no if condition == 0 else yes
        holds = self._truth(condition)
        return None if yes is None or no is None or holds is None else no + holds * (yes - no)

    def _truth(self, value: Any) -> Any:  # noqa: ANN401
        return None if value is None else find_truth(value, self._values)

    def _binary(self, level: int) -> Any:  # noqa: ANN401
        if level == len(_LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._peek() in _LEVELS[level] and not (self._fortran and self._peek() == "%"):
            operator = self._take()
            found = self._operate(operator, found, self._binary(level + 1))
        return found

    def _operate(self, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        if operator in ("&&", "||"):
            left, right = self._truth(left), self._truth(right)
            decides = 0 if operator == "&&" else 1
            if decides in (left, right):
                return sympy.Integer(decides)
            if left is None or right is None:
                return None
            return left * right if operator == "&&" else left + right - left * right
        if left is None or right is None:
            return None
        if operator in ("==", "!=", "<", ">", "<=", ">="):
            return self._compare(operator, left, right)
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*":
            return left * right
        if operator == "/":
            return Quotient(left, right)
        if operator == "%":
            return Remainder(left, right)
        if operator in ("<<", ">>") and right.is_Integer and 0 <= right < 63:
            return left * 2**right if operator == "<<" else Quotient(left, 2**right)
        if operator == "&" and right.is_Integer and right > 0 and (right & (right + 1)) == 0:
            return Remainder(left, right + 1)
        return None

    def _compare(self, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        holds = self._values.is_nonnegative
        if operator == ">=":
            return holds(left - right)
        if operator == "<=":
            return holds(right - left)
        if operator == ">":
            return holds(left - right - 1)
        if operator == "<":
            return holds(right - left - 1)
        same = holds(left - right) - holds(left - right - 1)
        return same if operator == "==" else 1 - same

    def _unary(self) -> Any:  # noqa: ANN401
        token = self._peek()
        if token in ("-", "+", "!", "~", "*", "&"):
            self._take()
            if token == "*" and re.fullmatch(r"[A-Za-z_]\w*", self._peek()) and self._peek(1) not in ("(", "[", "."):
                return self._values.name_value("*" + self._take())
            found = self._unary()
            if token == "!":
                holds = self._truth(found)
                return None if holds is None else 1 - holds
            return None if found is None or token in "~*&" else -found if token == "-" else found
        if token == "sizeof":
            self._take()
            return self._measure_size()
        found = self._primary()
        if self._fortran and self._peek() == "**":
            self._take()
            power = self._unary()
            return found**power if found is not None and power is not None and power.is_Integer and power >= 0 else None
        return found

    def _measure_size(self) -> Any:  # noqa: ANN401
        words = []
        if self._peek() == "(":
            given, self._at = _read_arguments(self._tokens, self._at)
            words = given[0]
        else:
            while self._peek() == "*":
                words.append(self._take())
            words.append(self._take())
        if "*" in words[1:]:
            return sympy.Integer(8)
        if "[" in words and words[0] in _TYPE_WORDS:
            at = words.index("[")
            sizes = " ".join(words[at + 1 : -1]).split("] [")
            element = _Parser(["sizeof", "(", *words[:at], ")"], self._values, self._fortran).parse_or_none()
            given = [_Parser(each.split(), self._values, self._fortran).parse_or_none() for each in sizes]
            return None if element is None or None in given else element * sympy.prod(given)
        size = next((_SIZES[word] for word in words if word in _SIZES), None)
        if size is None and words:
            size = self._values.object_size(words[-1] if words[0] == "*" else "".join(words))
        return None if size is None else sympy.Integer(size)

    def _primary(self) -> Any:  # noqa: ANN401
        token = self._take()
        if token == "(":
            if self._skip_cast():
                return self._unary()
            found = self._choice()
            self._expect(")")
            return found
        if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", token):
            return sympy.Integer(int(token, 0) if token[:2] in ("0x", "0X") else int(token))
        if token in ("static_cast", "reinterpret_cast", "std") and self._peek() in ("<", "::"):
            if token == "std":
                self._expect("::")
                return self._parse_name(self._take())
            while self._take() != ">":
                pass
            return self._unary()
        if re.fullmatch(r"[A-Za-z_]\w*", token):
            return self._parse_name(token)
        if token[:1] in "\"'" or re.match(r"[\d.]", token):
            return None
        raise _UnknownTokenError(token)

    def _skip_cast(self) -> bool:
        """Skip a type in parentheses that have been opened."""
        at = self._at
        while at < len(self._tokens) and (
            self._tokens[at] in _TYPE_WORDS or (at > self._at and self._tokens[at] == "*")
        ):
            at += 1
        if at == self._at or at >= len(self._tokens) or self._tokens[at] != ")":
            return False
        self._at = at + 1
        return True

    def _parse_name(self, name: str) -> Any:  # noqa: ANN401
        """Return the value of a name with its members, subscripts and calls."""
        while self._peek() in (".", "->") or (self._fortran and self._peek() == "%"):
            self._take()
            name += "." + self._take()
        if self._peek() == "(":
            written, after = _read_arguments(self._tokens, self._at)
            self._at = after
            texts = [" ".join(each) for each in written if each]
            given = [_Parser(each, self._values, self._fortran).parse_or_none() for each in written if each]
            return self._call(name, given, texts)
        if self._peek() == "[":
            subscripts = []
            while self._peek() == "[":
                self._take()
                subscripts.append(self._choice())
                self._expect("]")
            return self._values.element_value(name, subscripts)
        if self._peek() in ("++", "--"):
            self._take()
            return None
        return self._values.name_value(name)

    def parse_or_none(self) -> Any:  # noqa: ANN401
        """Return the value of all tokens, None where they are no expression."""
        try:
            return self.parse()
        except (_UnknownTokenError, IndexError):
            return None

    def _call(self, name: str, given: list[Any], written: list[str]) -> Any:  # noqa: ANN401
        bare = name.lower()
        if bare in ("min", "max", "min0", "max0", "imin", "imax") and given and None not in given:
            found = given[0]
            for each in given[1:]:
                smaller = self._values.is_nonnegative(each - found)
                least, most = each + (found - each) * smaller, found + (each - found) * smaller
                found = least if bare.lstrip("i").startswith("min") else most
            return found
        if bare in ("mod", "modulo") and len(given) == 2 and None not in given:
            return Remainder(*given)
        if bare in _THROUGH and given:
            return given[0]
        return self._values.call_value(name, given, written)
