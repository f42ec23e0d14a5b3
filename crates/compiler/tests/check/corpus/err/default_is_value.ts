const answer = 'yes';

/** A value is no tool. */
export default answer;
