// `require` for tools and packages: cached, cyclic-safe, and only of what the kernel put into the program.
const commonJs = table();
const esModules = table();

/** Module exports of a module in CommonJS form, run at most once. */
function loadCommonJs(id) {
  const known = commonJs[id];
  if (known !== undefined) return known.exports;
  const wrapper = host.commonJs(id);
  const module = { exports: {}, id, filename: id, loaded: false };
  commonJs[id] = module;
  try {
    const directory = id.includes('/') ? id.slice(0, id.lastIndexOf('/')) : '';
    apply(wrapper, module.exports, [module.exports, requireFrom(id), module, id, directory]);
  } catch (error) {
    delete commonJs[id];
    throw error;
  }
  module.loaded = true;
  return module.exports;
}

/** An ES module seen through `require`: callable when its default export is, with its names as properties. */
function loadEsModule(requirer, id) {
  const known = esModules[id];
  if (known !== undefined) return known;
  const namespace = host.requireModule(requirer, id);
  const tool = 'default' in namespace && !('__esModule' in namespace) ? defaultOf(namespace) : undefined;
  let seen = namespace;
  if (typeof tool === 'function') {
    seen = function (...values) {
      return new.target ? construct(tool, values, new.target) : apply(tool, this, values);
    };
    defineProperty(seen, 'name', { __proto__: null, value: tool.name, configurable: true });
    defineProperty(seen, 'prototype', { __proto__: null, value: tool.prototype, writable: true });
    for (const name of keys(namespace)) {
      if (hasOwn(seen, name)) continue;
      defineProperty(seen, name, { __proto__: null, get: () => namespace[name], enumerable: name !== 'default' });
    }
  }
  esModules[id] = seen;
  return seen;
}

/** The default export, or nothing while a cycle has not filled it in yet. */
function defaultOf(namespace) {
  try {
    return namespace.default;
  } catch {
    return undefined;
  }
}

function loadFor(requirer, id) {
  return host.isCommonJs(id) ? loadCommonJs(id) : loadEsModule(requirer, id);
}

function requireFrom(requirer) {
  return function require(specifier) {
    const id = host.resolve(requirer, String(specifier));
    if (id === undefined) {
      const error = new Error(`Cannot find module '${specifier}': only what is required by a constant name can be loaded`);
      error.code = 'ENOTFOUND';
      throw error;
    }
    return loadFor(requirer, id);
  };
}
