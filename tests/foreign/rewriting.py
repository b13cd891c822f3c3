"""Puts our namespace where a test module of NumPy imports NumPy."""

import ast
from typing import Any


class Rewriter(ast.NodeTransformer):
    """Turns imports of numpy into calls of namespace.load."""

    def visit_Module(self, node: ast.Module) -> Any:
        """Tables of functions are cut to size by their loops of objects: what is not in a table cannot be removed."""
        self.generic_visit(node)
        for at, statement in enumerate(node.body):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "remove":
                guard = ast.parse("try: pass\nexcept ValueError: pass").body[0]
                assert isinstance(guard, ast.Try)
                guard.body = [statement]
                node.body[at] = ast.copy_location(ast.fix_missing_locations(guard), statement)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        """Scalars are arrays of no axes here."""
        if node.id != "isinstance":
            return node
        found = ast.parse("__import__('namespace').is_instance", mode="eval").body
        return ast.copy_location(found, node)

    def visit_Import(self, node: ast.Import) -> Any:
        statements: list[ast.stmt] = []
        for alias in node.names:
            if alias.name.split(".")[0] != "numpy":
                statements.append(ast.Import([alias]))
                continue
            target, name = (alias.asname, alias.name) if alias.asname else ("numpy", "numpy")
            statements += ast.parse(f"{target} = __import__('namespace').load({name!r})").body
        return [ast.copy_location(ast.fix_missing_locations(item), node) for item in statements]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if (node.module or "").split(".")[0] != "numpy":
            return node
        lines = [
            f"{alias.asname or alias.name} = __import__('namespace').load_from({node.module!r}, {alias.name!r})"
            for alias in node.names
        ]
        statements = ast.parse("\n".join(lines)).body
        for item in statements:
            for part in ast.walk(item):
                ast.copy_location(part, node)
        return statements

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Lets a class stand although one of its attributes cannot be made."""
        self.generic_visit(node)
        node.body = [guarded(item) if isinstance(item, ast.Assign) else item for item in node.body]
        return node


def guarded(assignment: ast.Assign) -> ast.Try:
    """The assignment; if it is refused, what raises the refusal as soon as a test uses it."""
    refused = ast.parse("__import__('namespace').Refused(refusal)", mode="eval").body
    handler = ast.ExceptHandler(ast.Name("TypeError", ast.Load()), "refusal", [ast.Assign(assignment.targets, refused)])
    statement = ast.Try([assignment], [handler], [], [])
    for part in ast.walk(statement):
        ast.copy_location(part, assignment)
    return statement


def rewrite(code: str) -> str:
    """The module's source with our namespace in NumPy's place."""
    return ast.unparse(ast.fix_missing_locations(Rewriter().visit(ast.parse(code))))
