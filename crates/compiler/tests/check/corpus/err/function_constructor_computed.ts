const key = 'construct' + 'or';

/** The same, computed. */
export default () => [''['constructor']['constructor'], (() => 1)[key]('return 1')];
