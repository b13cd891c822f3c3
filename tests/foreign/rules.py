"""Which of NumPy's tests are about what arrays of numbers cannot have.

A rule is a name and a pattern. A test is excluded when the pattern occurs in its source (its own function, with its
decorators), when a parameter of it names an element type of that kind, or when the test ends with our error that arrays
of numbers cannot have such a type. Excluded is also what the table of the API (tests/api/np.tsv) declares out of scope:
names, and classes derived from arrays, by their hooks (`__array_finalize__`, `__array_wrap__`).
"""

import ast
import re
from typing import Any

import numpy

SOURCE = {
    "object": [
        r"\bobject_?\b",
        r"['\"][|<>=]?O['\"]",
        r"\b(Decimal|Fraction|frompyfunc|PyObject)\b",
    ],
    "string": [
        r"np\.(str_|bytes_|char\b|strings)",
        r"['\"][<>|=]?[SUa]\d*['\"]",
        r"StringDType|chararray|\bstrings?_dt",
        r"(astype\(|dtype=|dtype\()(str|bytes)\b",
    ],
    "datetime": [
        r"datetime|timedelta|NaT\b|\bisnat\b|busday",
        r"['\"][<>]?[mM]8?(\[\w+\])?['\"]",
    ],
    "structured": [
        r"np\.(void|rec|record|recarray)\b|repack_fields|\bfields?=",
        r"dtype\(\[\(|dtype=\[\(|dtype=\{|dtype\(\{|\[\(['\"]\w*['\"], ",
        r"['\"][Vbifu<>]\d*(,\s*\w+)+['\"]|['\"]V\d*['\"]",
    ],
    "masked": [r"\bma\.|np\.ma\b|[mM]asked|np\.matrix|\bmatrix\(|asmatrix|np\.bmat"],
    "long double": [r"longdouble|float128|complex256|['\"][<>]?[gG]['\"]"],
    "byte order": [r"newbyteorder|byteswap|['\"][>][a-zA-Z]\d*['\"]|\bbyteorder\b|['\"]big['\"]"],
    "C internals": [
        r"_multiarray_tests|_umath_tests|ncu_tests|\bumt\.|_rational_tests|\brational\b|opflag_tests|_struct_ufunc",
        r"\buml\.|lapack_lite|ctypes|\bct\.|getrefcount|HAS_REFCOUNT|__array_struct__|nditer|np\.memmap|mmap\.",
        r"np\.broadcast\(|\bnp\._core\.|incref_elide|IsPythonScalar|_get_ndarray_c_version|setbufsize|_no_tracing",
        r"__array_finalize__|__array_wrap__|__array_prepare__|_typelessdata|inspect\.signature|requires_memory",
        r"dtype_meta|metadata=|np\.show_config|subprocess|_dtype_from_pep3118|format_options|run_threaded",
        r"_replace_nan|_nan_mask|_multi_dot_matrix_chain_order|nfb\.|_?extobj|errcall|normalize_axis_tuple|sctypes\b",
        r"obj2sctype|get_c_wrapping_array|CommaDecimalPointLocale|tracemalloc|_add_newdoc|_warn_on_write",
        r"_resolve_dtypes_and_context|_get_strided_loop",
    ],
}

KINDS = {"O": "object", **dict.fromkeys("SUT", "string"), "V": "structured", **dict.fromkeys("mM", "datetime")}
NAMES_OUT_OF_SCOPE = r"\bnp\.({})\b"


def scopes(table: str) -> list[str]:
    """Names of module numpy that the contract declares out of scope."""
    rows = [line.split("\t") for line in table.splitlines()[1:]]
    return [row[1] for row in rows if row[0] == "numpy" and row[6] == "out" and row[1] not in ("testing", "test")]


class Rules:
    """Applies the rules to a test's source, to its parameters and to the error it ended with."""

    def __init__(self, contract: str) -> None:
        self.patterns = {name: re.compile("|".join(patterns)) for name, patterns in SOURCE.items()}
        names = "|".join(scopes(contract))
        self.patterns["out of scope"] = re.compile(NAMES_OUT_OF_SCOPE.format(names))
        self._out_of_scope = set(scopes(contract))

    def read_imports(self, code: str) -> None:
        """Names out of scope that a module imports are out of scope without `np.` before them, too."""
        imported = {
            alias.asname or alias.name
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numpy"
            for alias in node.names
            if alias.name in self._out_of_scope
        }
        if imported:
            self.patterns["out of scope, imported"] = re.compile(rf"\b({'|'.join(imported)})\b")

    def of_source(self, source: str) -> str | None:
        """The rule that excludes a test with this source."""
        return next((name for name, pattern in self.patterns.items() if pattern.search(source)), None)

    def of_parameter(self, value: Any) -> str | None:
        """The rule that excludes a test with this parameter."""
        if isinstance(value, list | tuple):
            return next(filter(None, map(self.of_parameter, value)), None)
        if isinstance(value, str) and value == "E":  # the letter of ml_dtypes' bfloat16 among the loops of a function
            return "unknown to NumPy"
        if isinstance(value, str) and (len(value) > 3 or not value):
            return None
        if not isinstance(value, str | numpy.dtype | type):
            return None
        try:
            dtype = numpy.dtype(value)
        except (TypeError, ValueError, SyntaxError):
            return None
        if isinstance(value, type) and not issubclass(value, numpy.generic):
            return "object" if value is object else "string" if value in (str, bytes) else None
        if dtype.char in "gG":
            return "long double"
        if not dtype.isnative:
            return "byte order"
        return KINDS.get(dtype.kind)

    @staticmethod
    def of_error(text: str) -> str | None:
        """The rule for a test that asked us for a type that arrays of numbers cannot have."""
        match = re.search(r"arrays of numbers cannot have dtype (\w+)|nested sequences of .*no array of numbers", text)
        absent = re.search(r"has no attribute '(Void|Str|Bytes|String|Object|DateTime64|TimeDelta64)DType'", text)
        return "element type" if match or absent else None


class OtherKinds(ast.NodeTransformer):
    """Leaves out what a test does for parameters of other kinds only: `if dtype == "O": ...`."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        test = node.test
        asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.Is) and len(test.ops) == 1
        kind = ast.unparse(test.comparators[0]) if asks else ""
        if kind.strip("'\"") in (
            "O",
            "object",
            "np.object_",
            "np.longdouble",
            "np.clongdouble",
            "S",
            "U",
            "V",
            "m",
            "M",
        ):
            return node.orelse or ast.Pass()
        return node


def sources(code: str) -> dict[str, str]:
    """Source of each test of a module by 'Class::function' or 'function', with its decorators and its class's set-up.

    Comments and docstrings are left out: they mention what the test does not do; and tables of parameters, each
    of which is looked at for itself.
    """
    tree = OtherKinds().visit(ast.parse(code))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = [item for item in node.decorator_list if "parametrize" not in ast.unparse(item)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.unparse(node)
        elif isinstance(node, ast.ClassDef):
            functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            around = [ast.unparse(decorator) for decorator in node.decorator_list]
            around += [ast.unparse(item) for item in functions if item.name in ("setup_method", "setup_class")]
            for item in functions:
                found[f"{node.name}::{item.name}"] = "\n".join([*around, ast.unparse(item)])
    return found
