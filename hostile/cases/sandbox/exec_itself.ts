// expect: ERUNTIME
export default () => tgp.exec_tool('tools/hostile/exec_itself.ts');
