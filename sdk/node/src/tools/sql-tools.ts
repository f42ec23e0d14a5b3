/** The tool `exec_sql`, served by the application's own database connection. */

import type { TGP } from '../kernel.js';
import { checkKernel, onlyKernel } from '../registry.js';
import type { SqlSource } from '../sql/detect.js';
import { definitionOf } from './tgp-tools.js';
import { agentTool, type ToolSet } from './tool.js';

/**
 * Has the kernel execute the SQL of `exec_sql` and of `tgp.exec_sql` in tools with this database. Statements pass the router
 * like every call. Without `kernel` it is the only one of the process; where there are several, it has to be named.
 */
export function createSqlTools(executor: SqlSource, kernel?: TGP): ToolSet<'exec_sql'> {
  if (kernel !== undefined) {
    checkKernel('createSqlTools()', kernel);
  }
  const bound = kernel ?? onlyKernel('createSqlTools()');
  bound.useSql(executor);
  return { exec_sql: agentTool(bound, definitionOf('exec_sql')) };
}
