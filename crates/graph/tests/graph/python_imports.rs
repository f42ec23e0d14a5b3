//! Imports of Python, however they are written (security review 3, A7).

use serde_json::{Value, json};

use crate::support::{assert_written_one_by_one, committed, rows};

/// What a file of the domain imports: paths of files, specifiers of what is nowhere behind `?`, and packages behind their
/// ecosystem.
fn imports(code: &str, others: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![
        ("src/__init__.py", ""),
        ("src/web/__init__.py", ""),
        ("src/web/page.py", "def page(): pass\nclass Page:\n    def show(self): pass\n"),
        ("src/domain/__init__.py", ""),
        ("src/domain/price.py", ""),
        ("src/domain/a.py", code),
    ];
    files.retain(|(path, _)| !others.iter().any(|(other, content)| other == path && *content == GONE));
    files.extend(others.iter().filter(|(_, content)| *content != GONE));
    let (_project, store) = committed(&files);
    if !others.is_empty() || code.contains("sys") {
        assert_written_one_by_one(&files, &store);
    }
    let broken = rows(&store, "HEAD", "MATCH (f:File {broken: true}) RETURN f.path");
    assert_eq!(broken, Vec::<Vec<Value>>::new(), "{code}");
    let query = "MATCH (:File {path: 'src/domain/a.py'})-[i:IMPORTS]->(t) \
                 RETURN DISTINCT t.path, t.specifier, t.name, i.line ORDER BY i.line, t.path, t.name";
    let name = |row: Vec<Value>| match row.as_slice() {
        [Value::String(path), ..] => path.clone(),
        [_, Value::String(specifier), ..] => format!("?{specifier}"),
        [_, _, name, _] => format!("pypi:{}", name.as_str().unwrap()),
        _ => panic!("{row:?}"),
    };
    rows(&store, "HEAD", query).into_iter().map(name).collect()
}

/// In place of the content of a file that is not there.
const GONE: &str = "gone";

fn assert_page(codes: &[&str]) {
    for code in codes {
        let found = imports(code, &[]);
        assert!(found.iter().any(|path| path == "src/web/page.py"), "{code}\n{found:?}");
    }
}

fn assert_unresolved(codes: &[&str]) {
    for code in codes {
        let found = imports(code, &[]);
        assert!(found.iter().any(|path| path.starts_with('?')), "{code}\n{found:?}");
    }
}

#[test]
fn a_python_import_is_an_edge_however_it_is_written() {
    assert_page(&[
        "import src \\\n .web.page\n",
        "import src . web . page as p\n",
        "from src \\\n .web import page\n",
        "from src.web import (  # a.b\n  page  # c\n  , )\n",
        "from . \\\n . web import page\n",
        "from . .web.page \\\n import page\n",
        "from .. \\\n import web\nfrom ..\\\n web . page import *\n",
        "import os, src.web.page\n",
        "import src.ｗeb.page\n",
        "from src.𝓌𝓮𝓫 import ｐage as p\n",
        "def f():\n  if x:\n    from src.web.page import page\n",
        "if True: import src.web.page\n",
        "try:\n  import src.web.page.none\nexcept ImportError: pass\n",
        "class A: import src.web.page; x = 1\n",
        "match x:\n  case 1: import src.web.page\n",
        "# a\rimport src.web.page\r",
        "\u{feff}# coding: utf-8\nimport src.web.page\n",
    ]);
    let missing = imports("import src.web.gone\nimport src.web.page.gone\n", &[]);
    assert_eq!(missing, ["src/web/__init__.py", "?src.web.gone", "src/web/page.py"]);
    let twice = "__import__('src.web.page')\n__import__('src.web.page')\n";
    assert_eq!(imports(twice, &[]), ["src/web/page.py"]);
}

#[test]
fn a_python_call_that_loads_is_an_edge_under_any_name() {
    assert_page(&[
        "import pkgutil\npkgutil.resolve_name('src.web.page:page')\n",
        "from pkgutil import resolve_name as r\nr('src.web.page.Page.show')\n",
        "import pkgutil as p\np.get_loader('src.web.page').load_module()\n",
        "import importlib\nimportlib.import_module('.page', 'src.web')\n",
        "import importlib\nimportlib.import_module('..web.page', package='src.domain')\n",
        "import importlib\nimportlib.import_module('..web.page', __package__)\n",
        "import importlib\nimportlib.import_module(f'src.web' '.page')\n",
        "import importlib\nimportlib.import_module((  # why\n 'src.' + 'web' + r'.page'))\n",
        "import importlib as i\nm = i.import_module\nn = m\nn('src.web.page')\n",
        "im = __import__\nim('src.web.page')\n",
        "import os as im\nim = __import__\nim('src.web.page')\n",
        "from builtins import __import__ as im\nim(name='src.web.page')\n",
        "import builtins\nbuiltins.__import__('src.web.page')\n",
        "__builtins__['__import__']('src.web.page')\n",
        "__builtins__.__dict__['__import__']('src.web.page')\n",
        "(im := __import__)('src.web.page')\n",
        "__import__('src.web', fromlist=['page'])\n",
        "__import__('web', globals(), locals(), ('page',), 2)\n",
        "__import__('', globals(), level=2, fromlist=['web'])\n__import__('web.page', None, None, (), 2)\n",
        "import importlib\ngetattr(importlib, 'import_' + 'module')('src.web.page')\n",
        "import importlib\nvars(importlib)['import_module']('src.web.page')\n",
        "import importlib\nimportlib.__dict__['import_module']('src.web.page')\n",
        "__import__('importlib').import_module('src.web.page')\n",
        "class A:\n  load = staticmethod\n  load = __import__\nA.load('src.web.page')\n",
        "from importlib import *\nimport_module('src.web.page')\n",
        "import importlib\nimportlib.ｉmport_module('src.web.page')\n",
        "import runpy\nrunpy.run_module(mod_name='src.web.page', run_name='x')\n",
        "import importlib.util as u\nu.find_spec('src.web.page').loader.load_module()\n",
        "import pydoc\npydoc.locate('src.web.page.page')\n",
        "f'{__import__(\"src.web.page\")}'\n",
        "f'{1:{__import__(\"src.web.page\")}}'\n",
        "x: __import__('src.web.page') = 1\n",
        "def f(x: __import__('src.web.page') = 1) -> None: pass\n",
        "@__import__('src.web.page').page\ndef f(): pass\n",
        "class A(__import__('src.web.page').Page): pass\n",
        "[x for x in __import__('src.web.page').x if x]\n",
        "with __import__('src.web.page').page() as p: pass\n",
        "async def f():\n  await __import__('src.web.page').page()\n",
        "print(*[lambda: __import__('src.web.page')])\n",
    ]);
}

#[test]
fn a_python_file_that_is_loaded_by_its_path_is_an_edge() {
    assert_page(&[
        "from importlib import util\nutil.spec_from_file_location('x', 'src/web/page.py')\n",
        "from importlib.machinery import SourceFileLoader as S\nS('x', 'src/web/page.py').load_module()\n",
        "from importlib.machinery import SourceFileLoader\nSourceFileLoader(path='../web/page.py', fullname='x')\n",
        "import imp\nimp.load_source('x', 'src/web/page.py')\n",
        "import imp\nimp.load_module('x', None, 'src/web/page.py', ('.py', 'r', 1))\n",
        "import runpy\nrunpy.run_path('web/page.py')\n",
        "import runpy\nfrom pathlib import Path\nrunpy.run_path(Path(__file__).parent.parent / 'web' / 'page.py')\n",
        "import runpy, os\nrunpy.run_path(os.path.join(os.path.dirname(__file__), '..', 'web', 'page.py'))\n",
        "from runpy import run_path as r\nr(path_name=str(__import__('pathlib').Path('src', 'web').joinpath('page.py')))\n",
        "from os.path import join, dirname, abspath\nfrom runpy import *\n\
         run_path(join(dirname(dirname(abspath(__file__))), 'web/page.py'))\n",
        "from pathlib import Path as P\nimport runpy\nrunpy.run_path(P(__file__).resolve().parents[1] / 'web/page.py')\n",
        "exec(open('src/web/page.py').read())\n",
        "exec(compile(open('src/web/page.py', 'rb').read(), 'x', 'exec'), {})\n",
        "import builtins\nbuiltins.exec(open(file='src/web/page.py').read())\n",
        "from pathlib import Path\neval(compile(Path('src/web/page.py').read_text(), 'x', 'exec'))\n",
        "from pathlib import Path\nexec(Path('src/web/page.py').open().read())\n",
        "run = exec\nrun(open('src/web/page.py').read())\n",
    ]);
    let archive = [("src/web/page.zip", "zip")];
    let found = imports(
        "from zipimport import zipimporter as z\nz('src/web/page.zip').load_module('page')\n",
        &archive,
    );
    assert!(found.contains(&"src/web/page.zip".to_owned()), "{found:?}");
}

#[test]
fn a_directory_on_the_path_of_python_provides_modules() {
    assert_page(&[
        "import sys\nsys.path.insert(0, 'src/web')\nimport page\n",
        "import sys\nsys.path.append('src/web')\nfrom page import Page\n",
        "import sys\nsys.path.append('src')\nfrom web import page\n",
        "import sys as s\ns.path += ['src/web']\nimport page as p\n",
        "import sys\nsys.path = ['src/web'] + sys.path\nimport page\n",
        "import sys\nsys.path[:0] = ['src/web', *sys.path[1:]]\nimport page\n",
        "import sys\nsys.path[0] = 'src/web'\nimport page\n",
        "import sys\nsys.path.extend(('src/ok', 'src/web'))\nimport page\n",
        "from sys import path as p\np.insert(0, 'src/web')\nimport page\n",
        "from sys import *\npath.insert(0, 'src/web')\nimport page\n",
        "import sys\nadd = sys.path.append\nadd('src/web')\nimport page\n",
        "import sys\np = sys.path\np.append('src/web')\n__import__('page')\n",
        "import sys, os\nsys.path.append(os.path.join(os.path.dirname(__file__), '../web'))\nimport page\n",
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent.parent / 'web'))\nimport page\n",
        "import site\nsite.addsitedir('src/web')\nimport page\n",
        "from site import addsitedir as a\na('src/web')\nimport importlib\nimportlib.import_module('page')\n",
        "import page\nimport sys\nsys.path.insert(0, 'src/web')\n",
    ]);
    // What else is imported stays as it is.
    let code = "import sys\nsys.path.insert(0, 'src/web')\nimport numpy\nfrom . import price\n";
    assert_eq!(imports(code, &[]), ["pypi:sys", "pypi:numpy", "src/domain/price.py"]);
}

#[test]
fn a_python_directory_without_an_init_is_what_is_in_it() {
    let gone = [("src/__init__.py", GONE), ("src/web/__init__.py", GONE)];
    for code in ["from src import web as w\nw.page.page()\n", "import src.web\n", "from .. import web\n"] {
        assert_eq!(imports(code, &gone), ["src/web/page.py"], "{code}");
        let found = imports(code, &gone[1..]);
        assert!(found.contains(&"src/web/page.py".to_owned()), "{code} {found:?}");
    }
    assert_eq!(imports("import src.web.page\n", &gone), ["src/web/page.py"]);
    assert_eq!(imports("from src.web import page\n", &gone), ["src/web/page.py"]);
    assert_eq!(imports("import src.gone.page\n", &gone), ["pypi:src"]);
}

#[test]
fn a_python_import_that_is_computed_is_unresolved() {
    assert_unresolved(&[
        "import importlib\nimportlib.import_module('src.' + name)\n",
        "import importlib\nimportlib.import_module('.page', package)\n",
        "import importlib\nimportlib.import_module('...web.page', __name__)\n",
        "import importlib\nimportlib.import_module(*['src.web.page'])\n",
        "import importlib\nimportlib.import_module(**{'name': 'src.web.page'})\n",
        "import importlib\nimportlib.import_module('src.web\\x2epage')\n",
        "__import__('src.web', fromlist=names)\n",
        "__import__('web.page', level=n)\n",
        "list(map(__import__, ['src.web.page']))\n",
        "import functools, importlib\nfunctools.partial(importlib.import_module, 'src.web.page')()\n",
        "[f('src.web.page') for f in (__import__,)]\n",
        "def f(load=__import__): load('src.web.page')\n",
        "f = lambda: __import__\nf()('src.web.page')\n",
        "f, g = __import__, 1\nf('src.web.page')\n",
        "class A: pass\nA.f = __import__\nA.f('src.web.page')\n",
        "d = {'f': __import__}\nd['f']('src.web.page')\n",
        "def f():\n  from importlib import import_module\n  return import_module\nf()('src.web.page')\n",
        "f = None or __import__\nf('src.web.page')\n",
        "f = ((__import__),)[0]\nf('src.web.page')\n",
        "[__import__ for _ in x][0]('src.web.page')\n",
        "match __import__:\n  case f: f('src.web.page')\n",
        "class A: __call__ = __import__\nA()('src.web.page')\n",
        "import os as im\nim = __import__\nim('src.web.' + name)\n",
        "im = exec\nim = __import__\nim('src.web.page')\n",
        "from os import path as p\nimport sys\np = sys.path\np = importlib\np.append('src/web')\n",
        "import importlib\ngetattr(importlib, name)('src.web.page')\n",
        "import importlib\nf = getattr(importlib, name)\nf('src.web.page')\n",
        "import runpy\nrunpy.run_path(path)\n",
        "import runpy\nrunpy.run_path('/home/me/project/src/web/page.py')\n",
        "exec(open(name).read())\n",
        "exec(code)\n",
        "exec('import src.web.page')\n",
        "eval('__import__(\"src.web.page\")')\n",
        "with open('src/web/page.py') as f: exec(f.read())\n",
        "import sys\nsys.path.insert(0, directory)\nimport page\n",
        "import sys\nsys.path.insert(0, '/home/me/project/src/web')\nimport page\n",
        "import sys\nsys.path = directories\nimport page\n",
        "import site\nsite.addsitedir(f'src/{name}')\nimport page\n",
        "import sys\nsys.path.insert(0, '..')\nimport shop.src.web.page\n",
        "import sys\nsys.path.insert(0, '../shop/src/web')\nimport page\n",
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, Path(__file__).parents[3])\nimport shop.src.web.page\n",
        "import runpy\nrunpy.run_path('../shop/src/web/page.py')\n",
        "__path__.append('src/web')\nfrom . import price\n",
        "import src.domain\nsrc.domain.__path__ += ['src/web']\n",
        "__path__ = ['src/web']\n",
    ]);
}

#[test]
fn ordinary_python_is_not_unresolved() {
    for code in [
        "import sys\nprint(sys.path, sys.argv)\nfor p in sys.path: print(p)\n",
        "import sys\nif '.' in sys.path: sys.path.remove('.')\n",
        "run_path = 'a'\nprint(run_path)\n",
        "cursor.exec(sql)\ncursor.execute(sql)\nre.compile(pattern)\n",
        "exec('x = 1')\neval(text)\n",
        "def import_module(name): return name\n",
        "f(import_module=1)\n",
        "import os\nos.path.join(a, b)\nopen(name).read()\n",
        "from sys import argv\npath = argv[1]\nfor path in x: path = path + y\n",
        "import sys\nout = sys.stdout\nout = sys.stderr\nout.write(x)\nfirst = sys.path[0]\nfirst = y\n",
        "try:\n  from importlib import reload\nexcept ImportError:\n  from imp import reload\nreload(x)\n",
        "try:\n  from importlib.resources import files\nexcept ImportError:\n  from importlib_resources import files\nfiles(x)\n",
        "class Store:\n  def find(self): return self.find_spec\n  def load(self, path): self.path.append(path)\n",
        "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
        "import importlib\nimportlib.reload(x)\nimportlib.invalidate_caches()\n",
    ] {
        let found = imports(code, &[]);
        assert!(found.iter().all(|target| !target.starts_with('?')), "{code} {found:?}");
    }
}

#[test]
fn python_in_another_encoding_is_not_read() {
    for (code, is_read) in [
        ("# coding: utf-7\n# +AAo-import src.web.page\n", false),
        ("#!/usr/bin/python\n# -*- coding: unicode_escape -*-\n# \\nimport src.web.page\n", false),
        ("#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n", true),
        ("x = 1\n# coding: utf-7\n", true),
    ] {
        let (_project, store) = committed(&[("a.py", code)]);
        let unread = rows(&store, "HEAD", "MATCH (f:File {unparsed: true}) RETURN f.path");
        assert_eq!(unread.is_empty(), is_read, "{code}");
    }
}

#[test]
fn deep_python_is_read_in_bounds() {
    let deep = format!("import importlib\nx = importlib{}\n", ".a".repeat(100_000));
    let wide = format!("import sys\nsys.path = [{}]\n", "a, ".repeat(100_000));
    let sum = format!("import sys\nsys.path.append({}'')\nimport page\n", "'a' + ".repeat(50_000));
    for code in [deep, wide, sum] {
        let (_project, store) = committed(&[("a.py", &code)]);
        let unread = rows(&store, "HEAD", "MATCH (f:File {unparsed: true}) RETURN f.path");
        assert_eq!(unread, [[json!("a.py")]]);
    }
}
