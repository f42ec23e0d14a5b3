/** Builds a sitemap of the pages of a site. */
export default function sitemap(args: { baseUrl: string; pages: { path: string; modified: string }[] }): string {
  const entries = args.pages.map(
    (page) => `  <url><loc>${new URL(page.path, args.baseUrl).href}</loc><lastmod>${page.modified}</lastmod></url>`,
  );
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">', ...entries, '</urlset>'].join('\n');
}
