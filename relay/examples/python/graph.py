#!/usr/bin/env python3
"""A graph in Python that knows no Cypher: it recognises the questions of relay/fixtures/graph-questions."""

import os
import posixpath
import re
import subprocess

from relay_part import Part, PartError

WORK_TREE = "WORKTREE"
QUESTIONS = {
    "MATCH (f:File) RETURN f.path AS path": "files",
    "MATCH (f:File {path: $path}) RETURN f.path AS path": "by_path",
    "MATCH (f:File {name: $name}) RETURN f.path AS path": "by_name",
    "MATCH (f:File) WHERE f.path IN $paths RETURN f.path AS path": "known",
    "MATCH (new:File)-[:WAS_RENAMED_FROM]->(old:File) RETURN new.path AS path, old.path AS earlier": "renames",
    "MATCH (f:File {path: $path})-[:WAS_RENAMED_FROM*]->(old:File) RETURN old.path AS path": "chain",
    "MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path IN $paths "
    "RETURN DISTINCT b.path AS imported, a.path AS importer": "importers",
}
COLUMNS = {"renames": ["path", "earlier"], "importers": ["imported", "importer"]}
IMPORT = re.compile(r"""^\s*(?:import|export)\b.*?['"](\.[^'"]*)['"]""", re.MULTILINE)
ENDINGS = ("", ".ts", ".tsx", ".js", "/index.ts")
# Seconds that one run of git may take.
GIT_PATIENCE = 30


class Graph(Part):
    kind = "graph"
    name = "graph.py"

    def start(self):
        self.commits = {}
        self.latest = None

    def git(self, *arguments):
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        ran = subprocess.run(["git", "-C", self.directory, *arguments], env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=GIT_PATIENCE)
        if ran.returncode:
            raise PartError("EGIT", f"git {arguments[0]} failed: {ran.stderr.decode('utf-8', 'replace').strip()}")
        return ran.stdout.decode("utf-8", "replace")

    def resolve(self, name):
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}").strip()
        except PartError:
            raise PartError("ENOTFOUND", f"`{name}` is no commit") from None

    def snapshot(self, commit, parents):
        paths = [path for path in self.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0") if path]
        files = {path: self.git("show", f"{commit}:{path}") for path in paths}
        renames = set()
        if parents:
            renames |= self.commits[parents[0]]["renames"] if parents[0] in self.commits else set()
            words = self.git("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", parents[0], commit)
            words = words.split("\0")
            for at in range(0, len(words) - 2, 3):
                renames.add((words[at + 2], words[at + 1]))
        # Only what leads from a living file into its past is remembered.
        living, reached = set(), list(files)
        while reached:
            path = reached.pop()
            for rename in renames - living:
                if rename[0] == path:
                    living.add(rename)
                    reached.append(rename[1])
        return {"files": files, "renames": living}

    def work_tree(self):
        listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        files = {}
        for path in filter(None, listed):
            place = os.path.join(self.directory, path)
            if os.path.isfile(place) and not os.path.islink(place):
                with open(place, encoding="utf-8", errors="replace") as file:
                    files[path] = file.read()
        return {"files": files, "renames": set()}

    def meant(self, commit):
        if commit == WORK_TREE:
            return self.work_tree(), {"ref": commit, "commit": "", "draft": True, "behind": False}
        found = self.resolve(commit) if commit else self.latest
        if found not in self.commits:
            raise PartError("ENOTFOUND", f"`{commit}` was not ingested", help="ingest it first")
        return self.commits[found], {"ref": commit or found, "commit": found, "draft": False, "behind": False}

    def ask(self, snapshot, standing, question):
        kind = QUESTIONS.get(" ".join(question["query"].split()))
        if kind is None:
            raise PartError("EVALIDATION", "this graph knows no Cypher but the questions of the relay")
        params = question.get("params") or {}
        rows = getattr(self, "ask_" + kind)(snapshot, params)
        return {"columns": COLUMNS.get(kind, ["path"]), "rows": [list(row) for row in rows], "truncated": False, **standing}

    def ask_files(self, snapshot, _params):
        return [(path,) for path in snapshot["files"]]

    def ask_by_path(self, snapshot, params):
        return [(path,) for path in snapshot["files"] if path == params["path"]]

    def ask_by_name(self, snapshot, params):
        return [(path,) for path in snapshot["files"] if posixpath.basename(path) == params["name"]]

    def ask_known(self, snapshot, params):
        return [(path,) for path in snapshot["files"] if path in params["paths"]]

    def ask_renames(self, snapshot, _params):
        return sorted(snapshot["renames"])

    def ask_chain(self, snapshot, params):
        names, path = [], params["path"]
        while True:
            older = [old for new, old in snapshot["renames"] if new == path and old not in names]
            if not older:
                return [(name,) for name in names]
            path = older[0]
            names.append(path)

    def ask_importers(self, snapshot, params):
        pairs = set()
        for importer, text in snapshot["files"].items():
            for target in IMPORT.findall(text):
                path = posixpath.normpath(posixpath.join(posixpath.dirname(importer), target))
                found = [path + ending for ending in ENDINGS if path + ending in snapshot["files"]]
                if found and found[0] in params["paths"]:
                    pairs.add((found[0], importer))
        return sorted(pairs)

    def on_ingest(self, _request, params):
        name = params["commit"]
        commit = self.resolve("HEAD" if name == WORK_TREE else name)
        new = 0
        for line in self.git("rev-list", "--topo-order", "--reverse", "--parents", commit).splitlines():
            one, *parents = line.split()
            if one not in self.commits:
                self.commits[one] = self.snapshot(one, parents)
                new += 1
        self.latest = commit
        files = len(self.commits[commit]["files"])
        return {"commit": commit, "commits": new, "parsed": 0, "files": files, "broken": 0}

    def on_query(self, _request, params):
        snapshot, standing = self.meant(params.get("commit"))
        return self.ask(snapshot, standing, params)

    def on_propose(self, _request, params):
        before, standing = self.meant(WORK_TREE)
        files = dict(before["files"])
        for change in params["changes"]:
            if change["content"] is None:
                files.pop(change["path"], None)
            else:
                files[change["path"]] = change["content"]
        after = {**before, "files": files}
        return [[self.ask(one, standing, question) for one in (before, after)] for question in params["questions"]]


if __name__ == "__main__":
    Graph().run()
