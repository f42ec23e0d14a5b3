// expect: ERUNTIME | ECOMPILE | ENOTFOUND | ESECURITY
const name = ['tgp', 'require'].join(':');
export default async () => Object.keys(await import(name));
