namespace Text {
  export const trim = (text: string): string => text.trim();
}

function join(parts: string[]): string;
function join(parts: string[], glue: string): string;
function join(parts: string[], glue = ' '): string {
  return parts.map(Text.trim).join(glue);
}

/** Joins parts. */
export default function tool(args: { parts: string[] }): string {
  return join(args.parts);
}
