import { wrap } from './wrap';

/** Only running it would tell. */
export default wrap((args: { n: number }) => args.n);
