const a = await Promise.resolve(1);
module.exports = a;
