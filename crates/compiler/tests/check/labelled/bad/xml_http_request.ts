/** Loads a page. */
export default function loadPage(args: { url: string }): string {
  const request = new XMLHttpRequest();
  request.open('GET', args.url, false);
  request.send();
  return request.responseText;
}
