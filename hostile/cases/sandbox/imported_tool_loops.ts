// expect: ERR_ISOLATE_TIMEOUT
import { value } from './imported_tool_loops_other.ts';
export default () => value;
// file: imported_tool_loops_other.ts
while (true) {}
export const value = 1;
