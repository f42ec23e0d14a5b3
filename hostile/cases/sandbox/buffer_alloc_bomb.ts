// expect: ERR_ISOLATE_MEMORY
export default () => Buffer.alloc(2_147_483_647).length;
