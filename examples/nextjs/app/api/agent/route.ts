import { openai } from '@ai-sdk/openai';
import { TGP, tgpTools, createSqlTools } from '@tgp/core';
import { generateText, isStepCount } from 'ai';
import { myDbExecutor } from '@/lib/db';

const kernel = new TGP({ configFile: './tgp.config.ts' });

export async function POST(req: Request) {
  const { messages } = await req.json();

  // The tools to find, forge, test and run tools.
  const systemTools = tgpTools(kernel);
  // `exec_sql`, which uses your database. Forged tools use it as `tgp.exec_sql`.
  const dataTools = createSqlTools(myDbExecutor);

  const result = await generateText({
    model: openai('gpt-5'),
    tools: { ...systemTools, ...dataTools },
    messages,
    system: kernel.getSystemPrompt(),
    stopWhen: isStepCount(20),
    abortSignal: req.signal,
  });

  return Response.json({ text: result.text });
}
