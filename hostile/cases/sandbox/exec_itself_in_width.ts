// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT
export default () => Promise.all(Array.from({ length: 900 }, () => tgp.exec_tool('tools/hostile/exec_itself_in_width.ts')));
