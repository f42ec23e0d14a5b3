const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Escapes a text for HTML. */
export default (args: { text: string }): string => args.text.replace(/[&<>"']/g, (char) => ESCAPES[char]);
