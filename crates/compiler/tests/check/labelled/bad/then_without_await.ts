/** Counts words of a page. */
export default async function countWords(args: { url: string }) {
  let count = 0;
  tgp.fetch(args.url).then(async (response) => {
    count = (await response.text()).split(/\s+/).length;
  });
  return { count };
}
