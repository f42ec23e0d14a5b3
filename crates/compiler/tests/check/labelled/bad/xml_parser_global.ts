/** The title of an XML document. */
export default function xmlTitle(args: { xml: string }): string {
  const document = new DOMParser().parseFromString(args.xml, 'text/xml');
  return document.querySelector('title')?.textContent ?? '';
}
