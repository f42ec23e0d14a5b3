// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
export default () => '\ufdfa'.repeat(3_000_000).normalize('NFKD').length;
