const user = 'admin';

/** Writes to one person, in pieces. */
export default () => [user + '@' + 'example.com', `${user}@${'example'}.org`, ['a', 'b.net'].join('@')];
