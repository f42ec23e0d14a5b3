/** The first answer of several mirrors, or an error after a while. */
export default async function fastestMirror(args: { mirrors: string[]; timeoutMs?: number }): Promise<string> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), args.timeoutMs ?? 5000);
  try {
    const response = await Promise.any(args.mirrors.map((url) => fetch(url, { signal: controller.signal })));
    return await response.text();
  } finally {
    clearTimeout(timer);
  }
}
