type State = 'draft' | 'submitted' | 'approved' | 'rejected';
type Action = 'submit' | 'approve' | 'reject' | 'revise';

const TRANSITIONS: Record<State, Partial<Record<Action, State>>> = {
  draft: { submit: 'submitted' },
  submitted: { approve: 'approved', reject: 'rejected' },
  approved: {},
  rejected: { revise: 'draft' },
};

/** The state of a document after some actions. */
export default function stateMachine(args: { state: State; actions: Action[] }): State {
  return args.actions.reduce<State>((state, action) => {
    const next = TRANSITIONS[state][action];
    if (!next) throw new Error(`cannot ${action} a document that is ${state}`);
    return next;
  }, args.state);
}
