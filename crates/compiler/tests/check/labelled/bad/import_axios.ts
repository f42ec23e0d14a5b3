import axios from 'axios';

/** Downloads JSON. */
export default async function download(args: { url: string }): Promise<unknown> {
  return (await axios.get(args.url)).data;
}
