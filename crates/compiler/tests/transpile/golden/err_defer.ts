import defer * as later from './later';
export default later;
