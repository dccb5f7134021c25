import { LockStoreError } from "../errors.js";
import { LOCK_SORT } from "../protocol/addresses.js";
import { isMark } from "../protocol/mark.js";
import { askedBy, leftBy } from "../protocol/rules.js";
import { marshalledData } from "./data.js";
const COMPARISONS = { equal: "=", less: "<", greater: ">" };
export const TYPES = { string: { S: "S" }, number: { S: "N" }, map: { S: "M" } };
const ONE = { N: "1" };
export function actionOf(layout, write) {
    const conditional = conditionalOf(layout, write.at, askedBy(write));
    const effect = leftBy(write);
    switch (effect.kind) {
        case "put": {
            const { Key, ...rest } = conditional;
            return { Put: { ...rest, Item: { ...Key, ...valuesOf(layout, effect.attributes) } } };
        }
        case "update":
            return { Update: { ...conditional, UpdateExpression: updateOf(layout, effect, conditional) } };
        case "delete":
            return { Delete: conditional };
        case "nothing":
            return { ConditionCheck: conditional };
        default:
            return effect;
    }
}
export function checkOf(layout, check) {
    return conditionalOf(layout, check.at, askedBy(check));
}
export function itemKey(layout, { name, sort }) {
    const key = { [layout.partition]: { S: layout.keyPrefix + name } };
    if (layout.sort !== undefined)
        key[layout.sort] = { S: sort };
    else if (sort !== LOCK_SORT) {
        throw new LockStoreError(`Table ${layout.tableName} has no sort key, and so no row ${sort} of lock ${name}`);
    }
    return key;
}
export function storedValue(value) {
    if (typeof value === "string")
        return { S: value };
    if (typeof value === "bigint" || Number.isSafeInteger(value))
        return { N: `${value}` };
    if (typeof value === "number")
        throw new RangeError(`A row holds whole numbers only, not ${value}`);
    return marshalledData(value);
}
function attributeValue(attribute, value) {
    return attribute === "wanted" && isMark(value) ? { N: `${value}` } : storedValue(value);
}
function comparedValue(value) {
    return typeof value === "number" && Number.isFinite(value) ? { N: `${value}` } : storedValue(value);
}
const plans = new WeakMap();
function conditionalOf(layout, at, { condition, values }) {
    const plan = plans.get(condition) ?? planOf(condition);
    plans.set(condition, plan);
    const names = {};
    for (const attribute of plan.attributes)
        names[`#${attribute}`] = nameIn(layout, attribute);
    const used = { ...plan.literals };
    for (const value of plan.named)
        used[`:if_${value}`] = comparedValue(values[value]);
    return {
        TableName: layout.tableName,
        Key: itemKey(layout, at),
        ConditionExpression: plan.expression,
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: used,
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
}
function planOf(condition) {
    const plan = { attributes: new Set(), literals: {}, named: new Set() };
    const literalOf = (name, value) => {
        plan.literals[`:${name}`] = value;
        return `:${name}`;
    };
    const expression = conditionIn(condition, {
        wordOf: (path) => {
            const attributes = path.split(".");
            for (const attribute of attributes)
                plan.attributes.add(attribute);
            return attributes.map((attribute) => `#${attribute}`).join(".");
        },
        isMissing: (word) => `attribute_not_exists(${word})`,
        hasType: (word, type) => `attribute_type(${word}, ${literalOf(type, TYPES[type])})`,
        literal: (name, value) => literalOf(name, storedValue(value)),
        named: (value) => {
            plan.named.add(value);
            return `:if_${value}`;
        },
    });
    return { ...plan, expression };
}
export function conditionIn(condition, language) {
    const { wordOf, isMissing, hasType, literal, named } = language;
    const inside = (part) => {
        const text = conditionIn(part, language);
        return (part.kind === "all" || part.kind === "any") && part.kind !== condition.kind ? `(${text})` : text;
    };
    switch (condition.kind) {
        case "noItem":
            return isMissing(wordOf("name"));
        case "missing":
            return isMissing(wordOf(condition.attribute));
        case "type":
            return hasType(wordOf(condition.attribute), condition.type);
        case "equal":
        case "less":
        case "greater": {
            const { kind, attribute, to } = condition;
            const value = typeof to === "object" ? named(to.value) : literal(attribute, to);
            return `${wordOf(attribute)} ${COMPARISONS[kind]} ${value}`;
        }
        case "within": {
            const { name, least, most } = condition.range;
            const [from, to] = [literal(`least_${name}`, least), literal(`most_${name}`, most)];
            return `${wordOf(condition.attribute)} BETWEEN ${from} AND ${to}`;
        }
        case "all":
            return condition.of.map(inside).join(" AND ");
        case "any":
            return condition.of.map(inside).join(" OR ");
        default:
            return condition;
    }
}
function updateOf(layout, { set, remove, count }, { ExpressionAttributeNames: names, ExpressionAttributeValues: values }) {
    const wordOf = (attribute) => {
        names[`#${attribute}`] = nameIn(layout, attribute);
        return `#${attribute}`;
    };
    const setting = [];
    for (const [attribute, value] of Object.entries(set)) {
        if (value === undefined)
            continue;
        values[`:${attribute}`] = attributeValue(attribute, value);
        setting.push(`${wordOf(attribute)} = :${attribute}`);
    }
    if (count !== undefined)
        setting.push(countingOf(count, wordOf(count.attribute), values));
    const actions = setting.length === 0 ? [] : [`SET ${setting.join(", ")}`];
    if (remove.length > 0)
        actions.push(`REMOVE ${remove.map(wordOf).join(", ")}`);
    return actions.join(" ");
}
function countingOf({ seed }, word, values) {
    values[":one"] = ONE;
    if (seed === undefined)
        return `${word} = ${word} + :one`;
    values[":seed"] = storedValue(seed);
    return `${word} = if_not_exists(${word}, :seed) + :one`;
}
function valuesOf(layout, attributes) {
    const item = {};
    for (const [attribute, value] of Object.entries(attributes)) {
        if (value !== undefined)
            item[nameIn(layout, attribute)] = attributeValue(attribute, value);
    }
    return item;
}
export function nameIn(layout, attribute) {
    if (attribute === "name")
        return layout.partition;
    return attribute === "purge" ? layout.ttl : attribute;
}
