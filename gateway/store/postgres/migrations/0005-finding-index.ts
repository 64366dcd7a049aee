/** An index for the list of a merchant's findings. Released: must not change. */
export const FINDING_INDEX = `
CREATE INDEX finding_by_merchant ON finding (merchant_id, id);
`;
