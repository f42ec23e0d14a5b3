// expect: ERUNTIME | ENOTFOUND | ECOMPILE | ESECURITY
export default () => require(['tgp', 'require'].join(':'));
