declare const process: { exit(code: number): void };
declare function eval(code: string): string;
declare namespace Deno {
  const args: string[];
}

/** Declarations vanish when compiled; the globals stay. */
export default function tool(): string {
  process.exit(1);
  return eval('1') + Deno.args.join();
}
