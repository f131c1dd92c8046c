//! Enums whose variants have names: one list from which code, files and messages take them.

/// Declares an enum and gives each variant its name in files and on the command line.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident {
            $($(#[$note:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[$note])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// Every variant, in the order in which they are documented.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name used in files, messages and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl $crate::schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({"type": "string", "enum": [$($name),+]})
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
