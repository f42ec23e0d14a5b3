/** Adds slugs. */
export default function addSlugs(args: { posts: { title: string; slug?: string }[] }) {
  return args.posts.map((post) => {
    post.slug = post.title.toLowerCase().replace(/\s+/g, '-');
    return post;
  });
}
