"""Formulas, read by Python itself, in the arithmetic of numpy.

Written alike but for two things: `^` is `**`, and `if(` would be a statement."""

import ast
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

np.seterr(all="ignore")


def _round(x):
    """Half away from zero; Python's own and numpy's take the even one."""
    if not np.isfinite(x):
        return x
    wide = Context(prec=400)
    return np.float64(Decimal(float(x)).quantize(Decimal(1), rounding=ROUND_HALF_UP, context=wide))


NAMES = {
    "pi": np.float64(np.pi),
    "true": np.float64(1),
    "false": np.float64(0),
    "if_": lambda c, a, b: a if c else b,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "min": lambda *all: np.minimum.reduce(all),
    "max": lambda *all: np.maximum.reduce(all),
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": _round,
    "sign": np.sign,
    "hypot": np.hypot,
    "number": np.float64,
}


class _Numbers(ast.NodeTransformer):
    """All numbers are doubles; true is 1, whatever stands for it in Python."""

    def _number(self, node):
        self.generic_visit(node)
        # Of `a or b` Python gives one of the two.
        node = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node))
        return ast.Call(ast.Name("number", ast.Load()), [node], [])

    visit_BoolOp = visit_Compare = _number

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self._number(node)
        return self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.Call(ast.Name("number", ast.Load()), [node], [])


def values(formulas, numbers):
    """For each formula and its numbers (by name): whether it is finite, and what it is."""
    answers = []
    for formula, given in zip(formulas, numbers):
        text = formula.replace("^", "**").replace("if(", "if_(")
        tree = _Numbers().visit(ast.parse(text, mode="eval"))
        code = compile(ast.fix_missing_locations(tree), formula, "eval")
        given = {name: np.float64(number) for name, number in given.items()}
        value = float(eval(code, {"__builtins__": {}}, NAMES | given))
        finite = bool(np.isfinite(value))
        answers += [finite, value if finite else 0]
    return answers
