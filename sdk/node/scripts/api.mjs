// Generates docs/node-api.md from the declaration files of `npm run build`: what the package exports, as the compiler
// sees it. `--check` compares and changes nothing.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { SyntaxKind } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), '..');
const PAGE = join(PACKAGE, '..', '..', 'docs', 'node-api.md');
const ENTRY = join(PACKAGE, 'dist', 'index.d.ts');

const HEAD = `# API of \`@tgp/core\`

Generated from the types of the package by \`npm run api\` in \`sdk/node\`. [Use it from Node](node.md) explains how the parts work
together.
`;

const PARTS = `## Parts of these types

These have no export of their own.
`;

const SECTIONS = [
  ['Classes', [SyntaxKind.ClassDeclaration]],
  ['Functions', [SyntaxKind.FunctionDeclaration]],
  ['Values', [SyntaxKind.VariableStatement]],
  ['Types', [SyntaxKind.InterfaceDeclaration, SyntaxKind.TypeAliasDeclaration]],
];

/** The types of the package that the exported ones are made of, and those of these in turn. */
function partsOf(program, declarations) {
  const files = program.getSourceFileNames().filter((file) => resolve(file).startsWith(dirname(ENTRY)));
  const known = new Map();
  for (const source of files.map((file) => program.getSourceFile(file))) {
    for (const declaration of source.statements) {
      names(declaration).forEach((name) => known.set(name, [{ declaration, source }]));
    }
  }
  const parts = new Map();
  const waiting = [...declarations.values()];
  while (waiting.length > 0) {
    for (const { declaration, source } of waiting.pop()) {
      for (const [name] of signature(declaration, source).replaceAll(/\/\*\*[^]*?\*\//g, '').matchAll(/\b[A-Z]\w+\b/g)) {
        if (known.has(name) && !declarations.has(name) && !parts.has(name)) {
          parts.set(name, known.get(name));
          waiting.push(known.get(name));
        }
      }
    }
  }
  return parts;
}

/** The statements that declare what the entry of the package exports, by name, each with its source. */
function exported(program) {
  const declarations = new Map();
  for (const statement of program.getSourceFile(ENTRY).statements) {
    if (statement.kind !== SyntaxKind.ExportDeclaration) continue;
    const file = resolve(dirname(ENTRY), statement.moduleSpecifier.text.replace(/\.js$/, '.d.ts'));
    const source = program.getSourceFile(file);
    for (const { name } of statement.exportClause.elements) {
      const found = source.statements.filter((candidate) => names(candidate).includes(name.text));
      if (found.length === 0) throw new Error(`${name.text} is not declared in ${file}`);
      declarations.set(name.text, found.map((declaration) => ({ declaration, source })));
    }
  }
  return declarations;
}

function names(statement) {
  if (statement.kind === SyntaxKind.VariableStatement) {
    return statement.declarationList.declarations.map(({ name }) => name.text);
  }
  return statement.name === undefined ? [] : [statement.name.text];
}

/** The doc comment before a declaration, without its frame. */
function comment(declaration, source) {
  const before = source.text.slice(declaration.pos, start(declaration, source));
  const last = [...before.matchAll(/\/\*\*([^]*?)\*\//g)].at(-1);
  return last === undefined ? '' : last[1].replaceAll(/^\s*\*? ?/gm, '').trim().replaceAll(/\s*\n\s*/g, '\n');
}

/** Where a declaration begins behind its comments. */
function start(declaration, source) {
  const comments = /^(?:\s|\/\*[^]*?\*\/|\/\/[^\n]*\n)*/;
  return declaration.pos + comments.exec(source.text.slice(declaration.pos, declaration.end))[0].length;
}

function signature(declaration, source) {
  return source.text
    .slice(start(declaration, source), declaration.end)
    .replace(/^(export )?(declare )?/, '')
    // Private fields are no part of the API.
    .replaceAll(/^ +(#private|private [^\n]*);\n/gm, '')
    .replaceAll(/^( {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}

function entry(name, declarations, isExported) {
  const texts = declarations.map(({ declaration, source }) => signature(declaration, source));
  const about = declarations.map(({ declaration, source }) => comment(declaration, source)).filter(Boolean);
  const code = texts.join('\n');
  if (isExported && about.length === 0) throw new Error(`${name} has no doc comment`);
  return [`### \`${name}\``, ...about, `\`\`\`ts\n${code}\n\`\`\``].join('\n\n');
}

function sorted(entries) {
  return entries.sort(([one], [other]) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1));
}

function page() {
  const api = new API({ cwd: PACKAGE });
  try {
    const snapshot = api.updateSnapshot({ openFiles: [ENTRY] });
    const { program } = snapshot.getDefaultProjectForFile(ENTRY);
    const declarations = exported(program);
    const text = [HEAD];
    let count = 0;
    for (const [title, kinds] of SECTIONS) {
      const entries = [...declarations].filter(([, [first]]) => kinds.includes(first.declaration.kind));
      count += entries.length;
      text.push(`## ${title}\n`, ...sorted(entries).map(([name, found]) => `${entry(name, found, true)}\n`));
    }
    if (count !== declarations.size) throw new Error('a declaration is of no known kind');
    text.push(PARTS, ...sorted([...partsOf(program, declarations)]).map(([name, found]) => `${entry(name, found, false)}\n`));
    return text.join('\n');
  } finally {
    api.close();
  }
}

if (!existsSync(ENTRY)) {
  console.error('dist does not exist: run `npm run build`');
  process.exit(1);
}
const text = page();
if (!existsSync(PAGE) || readFileSync(PAGE, 'utf8') !== text) {
  if (process.argv.includes('--check')) {
    console.error('docs/node-api.md is not current: run `npm run build && npm run api`');
    process.exit(1);
  }
  writeFileSync(PAGE, text);
  console.error('wrote docs/node-api.md');
}
