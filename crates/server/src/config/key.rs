//! What one configuration key is. Parsing, validation, DescribeConfigs and the documentation all read these definitions;
//! the tables themselves are in [`super::keys`].

/// Kafka's type of a value; the numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a key that nobody knows.
    Unknown = 0,
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl Kind {
    /// As Kafka's messages spell it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Unknown => "UNKNOWN",
            Kind::Boolean => "BOOLEAN",
            Kind::String => "STRING",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }
}

/// What a value must satisfy beyond its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    Anything,
    AtLeast(i64),
    /// Inclusive on both ends.
    Between(i64, i64),
    /// Inclusive on both ends, or the given value.
    BetweenOr(i64, i64, i64),
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    /// A list with at least one element.
    NotEmpty,
    /// A list without repetitions; other lists drop them.
    Distinct,
    /// `*`, or a list of `partition:broker`.
    Replicas,
    /// `earliest`, `latest`, or `by_duration:` with a duration of ISO 8601.
    OffsetReset,
}

/// Whether AlterConfigs may change a broker key, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    ReadOnly,
    PerBroker,
    ClusterWide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// Which resource a key configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Broker,
    Topic,
    Group,
}

/// What Millstream makes of a key of Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has its effect.
    Used,
    /// It is accepted and means nothing here; the text says why.
    Inert(&'static str),
    /// It asks for protection that is not built: the broker does not start with it. The value in `Some` is harmless.
    Refused(Option<&'static str>),
}

/// A broker key that gives another key its value, and in which unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synonym {
    pub name: &'static str,
    /// What one unit of the synonym is worth in the key's own unit.
    pub factor: i64,
}

/// One definition per key.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written in a file; `None` is null.
    pub default: Option<&'static str>,
    pub check: Check,
    pub scope: Scope,
    pub update: Update,
    pub importance: Importance,
    /// Kafka hides such keys unless they are set.
    pub internal: bool,
    pub support: Support,
    /// Broker keys that a topic or group key (or a broker key in a finer unit) falls back to, the first that is set.
    pub synonyms: &'static [Synonym],
    pub doc: &'static str,
}

impl Key {
    const fn new(name: &'static str, kind: Kind, default: Option<&'static str>) -> Key {
        Key {
            name,
            kind,
            default,
            check: Check::Anything,
            scope: Scope::Broker,
            update: Update::ReadOnly,
            importance: Importance::Medium,
            internal: false,
            support: Support::Used,
            synonyms: &[],
            doc: "",
        }
    }

    pub const fn boolean(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::Boolean, Some(default))
    }

    pub const fn int(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::Int, Some(default))
    }

    pub const fn short(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::Short, Some(default))
    }

    pub const fn long(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::Long, Some(default))
    }

    pub const fn double(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::Double, Some(default))
    }

    pub const fn string(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::String, Some(default))
    }

    pub const fn list(name: &'static str, default: &'static str) -> Key {
        Key::new(name, Kind::List, Some(default))
    }

    /// A key without a default: null unless it is set.
    pub const fn unset(name: &'static str, kind: Kind) -> Key {
        Key::new(name, kind, None)
    }

    /// A key of Kafka's that is accepted and has no effect, and why.
    pub const fn inert(name: &'static str, kind: Kind, default: Option<&'static str>, why: &'static str) -> Key {
        let mut key = Key::new(name, kind, default);
        key.support = Support::Inert(why);
        key
    }

    /// A key that the broker refuses to start with, unless it has the harmless value.
    pub const fn refused(name: &'static str, harmless: Option<&'static str>) -> Key {
        let mut key = Key::new(name, Kind::String, None);
        key.support = Support::Refused(harmless);
        key
    }

    pub const fn check(mut self, check: Check) -> Key {
        self.check = check;
        self
    }

    pub const fn at_least(self, min: i64) -> Key {
        self.check(Check::AtLeast(min))
    }

    pub const fn cluster_wide(mut self) -> Key {
        self.update = Update::ClusterWide;
        self
    }

    pub const fn per_broker(mut self) -> Key {
        self.update = Update::PerBroker;
        self
    }

    pub const fn high(mut self) -> Key {
        self.importance = Importance::High;
        self
    }

    pub const fn low(mut self) -> Key {
        self.importance = Importance::Low;
        self
    }

    pub const fn internal(mut self) -> Key {
        self.internal = true;
        self
    }

    pub const fn topic(mut self) -> Key {
        self.scope = Scope::Topic;
        self
    }

    pub const fn group(mut self) -> Key {
        self.scope = Scope::Group;
        self
    }

    pub const fn synonyms(mut self, synonyms: &'static [Synonym]) -> Key {
        self.synonyms = synonyms;
        self
    }

    pub const fn doc(mut self, doc: &'static str) -> Key {
        self.doc = doc;
        self
    }

    /// Passwords are never shown.
    pub fn sensitive(&self) -> bool {
        self.kind == Kind::Password
    }
}

/// `same("log.retention.ms")`: a synonym in the same unit.
pub const fn same(name: &'static str) -> Synonym {
    Synonym { name, factor: 1 }
}

/// A synonym of which one unit is worth `factor` of the key's own.
pub const fn scaled(name: &'static str, factor: i64) -> Synonym {
    Synonym { name, factor }
}
