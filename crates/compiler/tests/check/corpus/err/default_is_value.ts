const answer = 'yes';

/** A value is not a tool. */
export default answer;
