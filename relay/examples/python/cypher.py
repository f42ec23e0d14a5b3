"""The part of Cypher that relay/fixtures/graph-questions/README.md describes: one chain, conditions, and columns."""

import re

from relay_part import PartError

TOKEN = re.compile(r"""\s+|(\w+|\$\w+|'[^'\\]*'|"[^"\\]*"|.)""", re.DOTALL)
COMPARISONS = {
    "=": lambda value, wanted: value == wanted,
    "IN": lambda value, wanted: value in wanted,
    "STARTS": lambda value, wanted: value.startswith(wanted),
    "ENDS": lambda value, wanted: value.endswith(wanted),
    "CONTAINS": lambda value, wanted: wanted in value,
}
RENAMED = "WAS_RENAMED_FROM"


def refuse(what):
    raise PartError("EVALIDATION", f"this graph knows only a part of Cypher: {what}",
                    help="see relay/fixtures/graph-questions/README.md")


class Chain:
    """A question, with its parameters in their places."""

    def __init__(self, text, params):
        self.tokens = [token for token in TOKEN.findall(text) if token]
        self.params = params
        # For each node the variable and the label; for each step the type, whether it repeats, and whether it is reversed.
        self.nodes, self.steps, self.conditions = [], [], []
        self.keyword("MATCH")
        self.node()
        while self.tokens[:1] in (["-"], ["<"]):
            self.step()
            self.node()
        if self.take("WHERE"):
            self.condition()
            while self.take("AND"):
                self.condition()
        self.keyword("RETURN")
        self.distinct = self.take("DISTINCT")
        self.returned, self.columns = [], []
        self.column()
        while self.take(","):
            self.column()
        if self.tokens:
            refuse(f"`{self.tokens[0]}` after the columns")

    def take(self, word):
        found = bool(self.tokens) and self.tokens[0].upper() == word
        if found:
            self.tokens.pop(0)
        return found

    def keyword(self, *words):
        for word in words:
            if not self.take(word):
                refuse(f"`{word}` was expected before `{' '.join(self.tokens[:3])}`")

    def word(self):
        if not self.tokens or not re.fullmatch(r"\w+", self.tokens[0]):
            refuse(f"a name was expected before `{' '.join(self.tokens[:3])}`")
        return self.tokens.pop(0)

    def value(self, kind):
        token = self.tokens.pop(0) if self.tokens else ""
        if token[:1] in ("'", '"') and kind is str:
            return token[1:-1]
        if token == "[" and kind is list:
            values = [self.value(str)]
            while self.take(","):
                values.append(self.value(str))
            self.keyword("]")
            return values
        found = self.params.get(token[1:]) if token[:1] == "$" else None
        if not isinstance(found, kind):
            refuse(f"`{token}` is no {kind.__name__}")
        return found

    def node(self):
        self.keyword("(")
        variable = self.word() if self.tokens[:1] not in ([":"], [")"], ["{"]) else None
        self.nodes.append((variable, self.word() if self.take(":") else None))
        if self.take("{"):
            while True:
                name = self.word()
                self.keyword(":")
                self.conditions.append((len(self.nodes) - 1, name, "=", self.value(str)))
                if not self.take(","):
                    break
            self.keyword("}")
        self.keyword(")")

    def step(self):
        is_reversed = self.take("<")
        self.keyword("-", "[", ":")
        kind = self.word()
        repeats = self.take("*")
        self.keyword("]", "-", *([] if is_reversed else [">"]))
        self.steps.append((kind, repeats, is_reversed))

    def property(self):
        variable = self.word()
        self.keyword(".")
        names = [known for known, _label in self.nodes]
        if variable not in names:
            refuse(f"`{variable}` is no variable of the chain")
        return names.index(variable), self.word()

    def condition(self):
        node, name = self.property()
        comparison = next((word for word in COMPARISONS if self.take(word)), None)
        if comparison is None:
            refuse(f"a comparison was expected before `{' '.join(self.tokens[:3])}`")
        if comparison in ("STARTS", "ENDS"):
            self.keyword("WITH")
        self.conditions.append((node, name, comparison, self.value(list if comparison == "IN" else str)))

    def column(self):
        self.returned.append(self.property())
        self.keyword("AS")
        self.columns.append(self.word())

    def fits(self, place, node):
        label = self.nodes[place][1]
        beside = self.steps[max(place - 1, 0):place + 1]
        if node["gone"] and not any(kind == RENAMED for kind, _repeats, _reversed in beside):
            return False
        own = [condition[1:] for condition in self.conditions if condition[0] == place]
        return label in (None, node["label"]) and all(
            name in node and COMPARISONS[comparison](node[name], wanted) for name, comparison, wanted in own)

    def rows(self, nodes, links):
        found = []

        def extend(chain, used):
            if not self.fits(len(chain) - 1, nodes[chain[-1]]):
                return
            if len(chain) == len(self.nodes):
                found.append([nodes[chain[node]].get(name) for node, name in self.returned])
                return
            for end, more in targets(chain[-1], self.steps[len(chain) - 1], used):
                extend(chain + [end], used | more)

        def targets(start, step, used):
            kind, repeats, is_reversed = step
            ends, open_ways = [], [(start, frozenset())]
            while open_ways:
                at, way = open_ways.pop()
                for number, link in enumerate(links):
                    one, other = (link[2], link[0]) if is_reversed else (link[0], link[2])
                    # No relationship is used twice.
                    if one == at and link[1] == kind and number not in used | way:
                        ends.append((other, way | {number}))
                        if repeats:
                            open_ways.append(ends[-1])
            return ends

        for number in range(len(nodes)):
            extend([number], frozenset())
        return [list(row) for row in dict.fromkeys(map(tuple, found))] if self.distinct else found
