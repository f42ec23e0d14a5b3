// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT
const again = (): unknown => JSON.parse('[1]', () => again());
export default again;
