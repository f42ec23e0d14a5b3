// role: config, id: tgp.config.ts
const name = 'A' + 'B';
export default { a: process.env[name], b: { ...process.env }, c: process.cwd() };
