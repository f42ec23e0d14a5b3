/** Reaches the loader. */
module.exports = () => [module.constructor, module.require, module['parent']];
