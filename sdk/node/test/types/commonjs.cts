// The types of `require`.

import core = require('@tgp/core');

const kernel = new core.TGP();
const tools: core.ToolSet<core.DefaultToolName> = core.tgpTools(kernel);
void tools.exec_tool.execute({ path: 'tools/a.ts' });
