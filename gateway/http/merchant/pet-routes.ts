/**
 * The routes of the pet registry, in which a merchant keeps records of pets (name, owner, breed) beside its locks:
 * operations 1 and 2 of the specification (interfaces.md §2).
 */
import { type Static, Type } from 'typebox';
import type { Fairness } from '../../fairness/fairness-settings.js';
import type { NamedId, Pet } from '../../store/contract/merchants/people-store.js';
import { toBigInt } from './check-value.js';
import { Refusal } from './refusal.js';
import {
  LACKS_SPEC,
  type MerchantRoute,
  problemResponse,
  tooLarge,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_TYPE,
} from './route.js';

const PET_STATUSES = ['available', 'pending', 'sold'] as const;

/** Maximum number of photos, and of tags, of one pet. More would block the event loop for too long. */
const MAX_ITEMS_OF_PET = 1_000;

/** A whole number of 64 bits, exact to the digit. */
export const Int64 = (options: { minimum?: number; description?: string } = {}) =>
  Type.Unsafe<number | bigint>({ type: 'integer', format: 'int64', ...options });

/** The schema of a name or another short text; without a limit if `maxLength` is Infinity. */
export function shortText(maxLength: number, options: { minLength?: number; description?: string } = {}) {
  return Type.String({ ...options, ...(Number.isFinite(maxLength) && { maxLength: maxLength }) });
}

function categoryOf(maxLength: number) {
  return Type.Object(
    { id: Type.Optional(Int64()), name: Type.Optional(shortText(maxLength)) },
    { description: 'A name with your own id.' },
  );
}

/** For answers, without a limit: stored names may be older than the limit. */
const Category = categoryOf(Number.POSITIVE_INFINITY);

const Status = Type.Unsafe<(typeof PET_STATUSES)[number]>({ type: 'string', enum: [...PET_STATUSES] });

function newPetOf(maxLength: number) {
  return Type.Object(
    {
      name: shortText(maxLength, { minLength: 1, description: 'The name of the pet.' }),
      owner_id: Type.Optional(shortText(maxLength, { description: 'The id of the user who owns the pet.' })),
      species: Type.Optional(shortText(maxLength)),
      breed: Type.Optional(shortText(maxLength)),
      owner: Type.Optional(
        Type.Object(
          { id: Type.Optional(shortText(maxLength)), name: Type.Optional(shortText(maxLength)) },
          { description: 'An alternative to owner_id. If both are present, they must agree.' },
        ),
      ),
    },
    { title: 'NewPet' },
  );
}

function changedPetOf(maxLength: number) {
  return Type.Object(
    {
      id: Int64({ minimum: 1, description: 'The id that the creation returned.' }),
      name: shortText(maxLength, { minLength: 1 }),
      photoUrls: Type.Array(Type.String(), { maxItems: MAX_ITEMS_OF_PET }),
      status: Type.Optional(Status),
      category: Type.Optional(categoryOf(maxLength)),
      tags: Type.Optional(Type.Array(categoryOf(maxLength), { maxItems: MAX_ITEMS_OF_PET })),
    },
    { title: 'ChangedPet' },
  );
}

type NewPet = Static<ReturnType<typeof newPetOf>>;
type ChangedPet = Static<ReturnType<typeof changedPetOf>>;

const PetBody = Type.Object(
  {
    id: Int64({ description: 'Assigned by lockgate; a merchant’s first pet is 1.' }),
    name: Type.String(),
    owner_id: Type.Optional(Type.String()),
    species: Type.Optional(Type.String()),
    breed: Type.Optional(Type.String()),
    photoUrls: Type.Array(Type.String()),
    status: Type.Optional(Status),
    category: Type.Optional(Category),
    tags: Type.Optional(Type.Array(Category)),
  },
  { title: 'Pet', description: 'A pet. Unknown members are absent.' },
);

// Examples for the documentation.
const CREATED = { id: 1, name: 'Rex', owner_id: '42', species: 'dog', breed: 'Beagle', photoUrls: [] };
const CHANGE = {
  id: 1,
  name: 'Rex',
  photoUrls: ['https://example.com/rex.jpg'],
  status: 'available',
  category: { id: 1, name: 'Dogs' },
  tags: [{ id: 1, name: 'brown' }],
};

const createPet = ({ nameLength, quota }: Fairness): MerchantRoute => ({
  method: 'POST',
  path: '/v1/pet',
  operationId: 'createPet',
  tag: 'pets',
  summary: 'Creates a pet.',
  scheme: 'api-key',
  keyScope: 'spec',
  body: newPetOf(nameLength),
  bodyBytes: quota.petBytes,
  bodyExample: { name: 'Rex', owner_id: '42', species: 'dog', breed: 'Beagle' },
  responses: {
    201: { description: 'The pet, with its id.', schema: PetBody, example: CREATED },
    400: problemResponse('The body is not JSON, the name is missing or empty, or a member has the wrong type.'),
    401: UNAUTHORIZED,
    403: LACKS_SPEC,
    413: tooLarge(quota.petBytes),
    415: WRONG_TYPE,
    429: tooMany(),
    503: UNAVAILABLE,
  },
  handle: async ({ parts, merchantId, body }) => {
    const { name, owner_id: ownerId, owner, species = null, breed = null } = body as NewPet;
    if (ownerId !== undefined && owner?.id !== undefined && ownerId !== owner.id)
      throw new Refusal({
        status: 400,
        code: 'input-body',
        detail: 'owner_id and owner name different users',
        faults: [{ pointer: '/owner/id', detail: 'it differs from owner_id: give one of them' }],
      });
    const pet = { name, ownerId: ownerId ?? owner?.id ?? null, species, breed };
    return { status: 201, body: petJson(await parts.store.people.addPet(merchantId, pet, parts.clock.now())) };
  },
});

const updatePet = ({ nameLength, quota }: Fairness): MerchantRoute => ({
  method: 'PUT',
  path: '/v2/pet',
  operationId: 'updatePet',
  tag: 'pets',
  summary: 'Updates a pet.',
  description:
    'Replaces the members of this schema: leaving out status, category or tags removes them. The owner, species and ' +
    'breed stay as they were created. The id is checked first (400), then the other members (405), then whether ' +
    'the pet exists (404).',
  scheme: 'bearer',
  keyScope: 'spec',
  body: changedPetOf(nameLength),
  bodyBytes: quota.petBytes,
  bodyExample: CHANGE,
  responses: {
    200: { description: 'The pet.', schema: PetBody, example: { ...CREATED, ...CHANGE } },
    400: problemResponse('Invalid ID supplied: missing, not an int64, or below 1; or the body is not JSON.'),
    401: UNAUTHORIZED,
    403: problemResponse('The token lacks the scope pets:write.'),
    404: problemResponse('Pet not found.'),
    405: problemResponse('Validation exception: a member is missing or invalid.', {
      allow: { description: 'Always PUT: the method itself is correct.', type: 'string' },
    }),
    413: tooLarge(quota.petBytes, ', or the updated pet would be'),
    415: WRONG_TYPE,
    429: tooMany(),
    503: UNAVAILABLE,
  },
  refuse: (faults) => {
    // The empty pointer: the body is no object, so it has no id either.
    const idFaults = faults.filter(({ pointer }) => pointer === '' || pointer === '/id');
    if (idFaults.length > 0)
      return new Refusal({ status: 400, code: 'input-id', detail: 'Invalid ID supplied', faults: idFaults });
    const headers = { allow: 'PUT' };
    return new Refusal({ status: 405, code: 'input-body', detail: 'Validation exception', faults, headers });
  },
  handle: async ({ parts, merchantId, body }) => {
    const { id, name, photoUrls, status = null, category, tags } = body as ChangedPet;
    const profile = {
      name,
      photoUrls,
      status,
      category: category === undefined ? null : toNamedId(category),
      tags: tags?.map(toNamedId) ?? null,
    };
    const pet = await parts.store.people.updatePet(merchantId, toBigInt(id), profile, parts.clock.now());
    if (pet === null) throw new Refusal({ status: 404, code: 'no-such-pet', detail: 'Pet not found' });
    return { status: 200, body: petJson(pet) };
  },
});

/** Operations 1 and 2. */
export const petRoutes = (fairness: Fairness): readonly MerchantRoute[] => [createPet(fairness), updatePet(fairness)];

/** Takes the known members; unknown members are dropped. */
function toNamedId({ id, name }: NonNullable<ChangedPet['category']>): NamedId {
  return { ...(id !== undefined && { id: toBigInt(id) }), ...(name !== undefined && { name }) };
}

function petJson(pet: Pet): Record<string, unknown> {
  const { id, name, ownerId, species, breed, photoUrls, status, category, tags } = pet;
  const members = { id, name, owner_id: ownerId, species, breed, photoUrls, status, category, tags };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
